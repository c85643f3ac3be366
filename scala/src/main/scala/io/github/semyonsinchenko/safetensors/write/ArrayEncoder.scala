package io.github.semyonsinchenko.safetensors.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.codec.UnencodableValueException
import io.github.semyonsinchenko.safetensors.dataset.NumberType
import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * Arrays of numbers.
 *
 * @param shape of every sample; where there is none, a sample is a vector of the array's length
 */
private[write] final class ArrayEncoder(
    dtype: Dtype,
    elements: NumberType.Encode,
    shape: Option[Seq[Int]],
    containsNull: Boolean)
    extends CellEncoder {

  private val elementSize = dtype.bits / 8
  private var last        = Sample(dtype, shape.getOrElse(Seq(0)))
  private var lastCount   = Sample.count(last.shape).getOrElse(-1L)

  override def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    val array = row.getArray(ordinal)
    val count = array.numElements()
    if (count != lastCount) change(count)
    if (containsNull) checkNulls(array)
    if (count > Int.MaxValue / elementSize)
      throw new InvalidCellException(s"$count elements of $dtype are over 2 GiB")
    try elements(array, payloadOf(dtype).room(count * elementSize))
    catch { case e: UnencodableValueException => throw new InvalidCellException(e.getMessage) }
    last
  }

  private def change(count: Int): Unit = {
    shape.foreach { fixed =>
      throw new InvalidCellException(
        s"$count elements, but `shapes` gives the column ${Sample.show(fixed)}, which takes ${Sample.count(
            fixed).fold("more than 2^63")(_.toString)}")
    }
    last = Sample(dtype, Seq(count))
    lastCount = count.toLong
  }

  private def checkNulls(array: ArrayData): Unit = {
    val index = NumberType.indexOfNull(array)
    if (index >= 0)
      throw new InvalidCellException(
        s"element $index is null, and tensors have no nulls. Fill it before the write")
  }
}
