package io.github.semyonsinchenko.safetensors.write

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.codec.{Encoder, UnencodableValueException}

/**
 * Arrays of numbers.
 *
 * @param shape  of every sample; where there is none, a sample is a vector of the array's length
 * @param values the array's elements as a primitive array of the encoder's type
 */
private[write] final class ArrayEncoder[A](
    encoder: Encoder[A],
    shape: Option[Seq[Int]],
    containsNull: Boolean)(values: ArrayData => A)
    extends CellEncoder {

  private val elementSize = encoder.dtype.bits / 8
  private var last        = Sample(encoder.dtype, shape.getOrElse(Seq(0)))
  private var lastCount   = Sample.count(last.shape).getOrElse(-1L)

  override def encode(row: InternalRow, ordinal: Int, payload: Payload): Sample = {
    val array = row.getArray(ordinal)
    val count = array.numElements()
    if (count != lastCount) change(count)
    if (containsNull) checkNulls(array, count)
    try encoder.encode(values(array), payload.room(Math.multiplyExact(count, elementSize)))
    catch {
      case e: UnencodableValueException => throw new InvalidCellException(e.getMessage)
      case _: ArithmeticException =>
        throw new InvalidCellException(s"$count elements of ${encoder.dtype} are over 2 GiB")
    }
    last
  }

  private def change(count: Int): Unit = {
    shape.foreach { fixed =>
      throw new InvalidCellException(
        s"$count elements, but `shapes` gives the column ${Sample.show(fixed)}, which takes ${Sample.count(
            fixed).fold("more than 2^63")(_.toString)}")
    }
    last = Sample(encoder.dtype, Seq(count))
    lastCount = count.toLong
  }

  private def checkNulls(array: ArrayData, count: Int): Unit = {
    var i = 0
    while (i < count) {
      if (array.isNullAt(i)) throw new InvalidCellException(
        s"element $i is null, and tensors have no nulls. Fill it before the write")
      i += 1
    }
  }
}
