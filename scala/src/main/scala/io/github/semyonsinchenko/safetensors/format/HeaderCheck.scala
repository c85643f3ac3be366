package io.github.semyonsinchenko.safetensors.format

/**
 * The checks of tensors and offsets against the file, as in `Metadata::validate` of the official library. Sizes and offsets
 * are unsigned 64-bit numbers, checked before anything is allocated for them.
 */
private[format] object HeaderCheck {

  /** The checked tensors in offset order. The header ends at byte `dataStart` of `source`. */
  def inOrder(header: ParsedHeader, dataStart: Int, source: ByteSource): IndexedSeq[TensorInfo] = {
    val tensors = header.tensors.toArray(Array.empty[TensorInfo])
    java.util.Arrays.sort(tensors, byOffsets)
    def refuse(refusal: Refusal, detail: String) =
      throw new InvalidFileException(source.name, refusal, detail)
    var position = 0L
    tensors.foreach { tensor =>
      check(tensor, position, refuse)
      position = tensor.end
    }
    if (position != source.length - dataStart)
      refuse(Refusal.MetadataIncompleteBuffer,
        s"its tensors end at byte ${unsigned(position)} of the byte buffer, which has ${source.length - dataStart} bytes")
    scala.collection.immutable.ArraySeq.unsafeWrapArray(tensors)
  }

  private val byOffsets: java.util.Comparator[TensorInfo] = { (left, right) =>
    val begins = java.lang.Long.compareUnsigned(left.begin, right.begin)
    if (begins != 0) begins else java.lang.Long.compareUnsigned(left.end, right.end)
  }

  private def check(tensor: TensorInfo, position: Long, refuse: (Refusal, String) => Nothing): Unit = {
    val name = s"tensor `${tensor.name}`"
    if (tensor.begin != position)
      refuse(Refusal.InvalidOffset,
        s"$name begins at byte ${unsigned(tensor.begin)}, expected ${unsigned(position)}")
    if (java.lang.Long.compareUnsigned(tensor.end, tensor.begin) < 0)
      refuse(Refusal.InvalidOffset, s"$name ends at byte ${unsigned(tensor.end)}, before it begins")
    val bits = bitCount(tensor).getOrElse(
      refuse(Refusal.ValidationOverflow, s"$name has the shape ${show(tensor.shape)}, too large for 64 bits"))
    if (bits % 8 != 0)
      refuse(Refusal.MisalignedSlice,
        s"$name has ${unsigned(bits)} bits, which is not a whole number of bytes")
    val size = java.lang.Long.divideUnsigned(bits, 8)
    if (tensor.size != size)
      refuse(Refusal.TensorInvalidInfo,
        s"$name has ${unsigned(tensor.size)} bytes, but shape ${show(
            tensor.shape)} of ${tensor.dtype} takes ${unsigned(size)}")
  }

  /** The bits of all elements. None if a product, from left to right, does not fit 64 bits. */
  private def bitCount(tensor: TensorInfo): Option[Long] = {
    val dims    = tensor.shape
    var product = 1L
    var i       = 0
    while (i < dims.length && fits(product, dims(i))) {
      product *= dims(i)
      i += 1
    }
    Option.when(i == dims.length && fits(product, tensor.dtype.bits.toLong))(product * tensor.dtype.bits)
  }

  /** Whether the product fits 64 bits. Most factors are small, which avoids the slow division. */
  private def fits(a: Long, b: Long): Boolean =
    (a | b) >>> 32 == 0 || b == 0 ||
      java.lang.Long.compareUnsigned(a, java.lang.Long.divideUnsigned(-1L, b)) <= 0

  private def unsigned(n: Long): String = java.lang.Long.toUnsignedString(n)

  private def show(shape: IndexedSeq[Long]): String = shape.map(unsigned).mkString("[", ", ", "]")
}
