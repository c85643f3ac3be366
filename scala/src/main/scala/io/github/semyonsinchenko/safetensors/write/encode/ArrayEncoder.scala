package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.codec.UnencodableValueException
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.NumberType
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/**
 * Encodes cells that are read as one array of numbers: scalars, arrays and vectors.
 *
 * @param shape the shape of every sample; none for vectors of the length of the array
 */
private[write] final class ArrayEncoder(
    dtype: Dtype,
    elements: NumberType.Encode,
    shape: Option[Seq[Int]],
    containsNull: Boolean,
    values: CellValues)
    extends CellEncoder {

  private var last      = Sample(dtype, shape.getOrElse(Seq(0)))
  private var lastCount = Sample.count(last.shape).getOrElse(-1L)

  override def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    val array = values(row, ordinal)
    val count = array.numElements()
    if (count != lastCount) change(count)
    if (containsNull) ArrayEncoder.checkNulls(array)
    ArrayEncoder.append(array, dtype, elements, payloadOf(dtype))
    last
  }

  private def change(count: Int): Unit = {
    shape.foreach(Sample.checkCount(count.toLong, _))
    last = Sample(dtype, Seq(count))
    lastCount = count.toLong
  }
}

private[write] object ArrayEncoder {

  def checkNulls(array: ArrayData): Unit = {
    val index = NumberType.indexOfNull(array)
    if (index >= 0)
      throw new InvalidCellException(
        s"element $index is null, and tensors have no nulls. Fill it before the write")
  }

  def append(array: ArrayData, dtype: Dtype, elements: NumberType.Encode, payload: Payload): Unit = {
    val size = array.numElements().toLong * dtype.bits / 8
    if (size > Int.MaxValue)
      throw new InvalidCellException(
        s"${array.numElements()} elements of $dtype are over 2 GiB. Split the array")
    try elements(array, payload.room(size.toInt))
    catch { case e: UnencodableValueException => throw new InvalidCellException(e.getMessage) }
  }
}
