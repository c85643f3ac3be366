package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.{NumberType, TensorStruct}
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/**
 * Writes the bytes of Tensor Structs unchanged.
 *
 * @param dtype the dtype that every struct must have; none to use the struct's own
 * @param shape replaces the shape of every sample, with the same number of elements; none to use the struct's own
 * @param isText whether the bytes must be UTF-8
 */
private[write] final class TensorEncoder(
    dtype: Option[Dtype],
    shape: Option[Seq[Int]],
    isText: Boolean = false)
    extends CellEncoder {

  private var last: Sample          = _
  private var lastDtype: UTF8String = _
  private var lastShape             = Array.empty[Int]
  private var lastSize              = -1L

  override def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    val struct = row.getStruct(ordinal, TensorStruct.dataType.length)
    checkNulls(struct)
    val dims = struct.getArray(TensorStruct.Shape).toIntArray()
    val name = struct.getUTF8String(TensorStruct.Dtype)
    if (name != lastDtype || !java.util.Arrays.equals(dims, lastShape)) change(name, dims)
    val bytes = TensorStruct.data(struct)
    if (bytes.remaining != lastSize) throw new InvalidCellException(
      s"${bytes.remaining} bytes of data, but shape ${Sample.show(dims.toSeq)} of ${last.dtype} takes $lastSize")
    if (isText) BytesEncoder.checkUtf8(UTF8String.fromBytes(bytes.array, bytes.position, bytes.remaining))
    payloadOf(last.dtype).append(bytes)
    last
  }

  private def checkNulls(struct: InternalRow): Unit = {
    if (struct.anyNull) {
      val field = TensorStruct.dataType.indices.find(struct.isNullAt).get
      throw new InvalidCellException(s"`${TensorStruct.dataType(field).name}` is null")
    }
    if (NumberType.indexOfNull(struct.getArray(TensorStruct.Shape)) >= 0)
      throw new InvalidCellException("a dimension in `shape` is null")
  }

  /** Checks a dtype and a shape that differ from those of the previous row. */
  private def change(name: UTF8String, dims: Array[Int]): Unit = {
    val own = Dtype.of(name.toString).getOrElse(throw new InvalidCellException(
        s"the unknown dtype `$name`, expected one of ${Dtype.all.mkString(", ")}"))
    dtype.filter(_ != own).foreach { asked =>
      throw new InvalidCellException(
        s"dtype $own, but the option `dtype` asks for $asked, and bytes are not converted")
    }
    lastSize = sizeOf(own, dims.toSeq)
    last = Sample(own, shape.getOrElse(dims.toSeq))
    if (shape.exists(Sample.count(_) != Sample.count(dims.toSeq))) throw new InvalidCellException(
      s"shape ${Sample.show(dims.toSeq)}, which `shapes` cannot make ${Sample.show(shape.get)}: their elements differ in number")
    lastDtype = name.copy()
    lastShape = dims
  }

  private def sizeOf(dtype: Dtype, dims: Seq[Int]): Long = {
    dims.find(_ < 0).foreach(_ =>
      throw new InvalidCellException(s"the negative dimension in shape ${Sample.show(dims)}"))
    val bits = Sample.count(dims :+ dtype.bits).getOrElse(throw new InvalidCellException(
        s"shape ${Sample.show(dims)} of $dtype, which no 64 bits count"))
    if (bits % 8 != 0)
      throw new InvalidCellException(s"shape ${Sample.show(dims)} of $dtype, which fills no whole bytes")
    bits / 8
  }
}
