package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.columns.TensorField
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/**
 * A tensor, or its samples, as Tensor Structs with the fields that a query needs.
 *
 * They are in the memory layout of Spark's rows, byte for byte as Spark itself lays them out, which compares rows by their bytes:
 * Spark takes such a struct as it is, so that a tensor's bytes go from the file to their place in the row in one copy.
 */
private[read] final class TensorCell(
    file: OpenFile,
    tensor: TensorInfo,
    shape: IndexedSeq[Long],
    fields: Vector[TensorField]) {

  private lazy val dims = UnsafeArrayData.fromPrimitiveArray(checkedDims.iterator.map(_.toInt).toArray)
  private val count     = fields.length
  private val fixed     = UnsafeRow.calculateBitSetWidthInBytes(count) + 8 * count
  private val dtype     = TensorCell.dtypes(tensor.dtype)

  /** The struct of the `size` bytes from `start` of the file on, which are read later. */
  def struct(start: Long, size: Long): UnsafeRow = {
    val total = checked(size)
    val place = file.memory.reserve(total)
    val array = file.memory.chunk
    val base  = Platform.BYTE_ARRAY_OFFSET.toLong + place
    Platform.putLong(array, base, 0) // nothing is null
    var at = fixed
    var i  = 0
    while (i < count) {
      val bytes = length(fields(i), size).toInt
      // A field's word holds its place and its length; what fills its last word up is zeros.
      Platform.putLong(array, base + fixed - 8 * (count - i), at.toLong << 32 | bytes)
      if (bytes % 8 != 0) Platform.putLong(array, base + at + bytes / 8 * 8, 0)
      fields(i) match {
        case TensorField.Data  => file.memory.lacks(ByteCopy(start, bytes, array, place + at))
        case TensorField.Shape => dims.writeToMemory(array, base + at)
        case TensorField.Dtype => dtype.writeToMemory(array, base + at)
      }
      at += padded(bytes.toLong).toInt
      i += 1
    }
    val struct = new UnsafeRow(count)
    struct.pointTo(array, base, total)
    struct
  }

  private def checked(size: Long): Int = {
    var total = fixed.toLong
    fields.foreach(field => total += padded(length(field, size)))
    if (total > TensorStruct.MaxBytes) throw new UnreadableFileException(
      s"${file.file.path}: tensor `${tensor.name}` has $size bytes, and a binary value holds at most ${TensorStruct.MaxBytes}. " +
        "Select its `shape` and `dtype` only, or, if its first dimension counts samples, read it with the option `layout=rows`.")
    total.toInt
  }

  private def length(field: TensorField, size: Long): Long = field match {
    case TensorField.Data  => size
    case TensorField.Shape => dims.getSizeInBytes.toLong
    case TensorField.Dtype => dtype.numBytes.toLong
  }

  private def padded(count: Long): Long = (count + 7) / 8 * 8

  private def checkedDims: IndexedSeq[Long] = {
    if (!shape.forall(dim => dim >= 0 && dim <= Int.MaxValue)) throw new UnreadableFileException(
      s"${file.file.path}: tensor `${tensor.name}` has a dimension that no integer holds: " +
        s"${shape.map(java.lang.Long.toUnsignedString).mkString("[", ", ", "]")}. Select its other fields only.")
    shape
  }
}

private object TensorCell {
  private val dtypes: Map[Dtype, UTF8String] =
    Dtype.all.map(dtype => dtype -> UTF8String.fromString(dtype.name)).toMap
}
