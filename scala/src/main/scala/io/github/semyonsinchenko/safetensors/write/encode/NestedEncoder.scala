package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.NumberType
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/**
 * Encodes nested arrays: one dimension for each of `depth` levels, in row-major order.
 *
 * @param shape the shape of every sample, with the same number of elements; none to use the shape of the arrays
 */
private[write] final class NestedEncoder(
    dtype: Dtype,
    elements: NumberType.Encode,
    shape: Option[Seq[Int]],
    depth: Int)
    extends CellEncoder {

  private var last = Sample(dtype, Nil)

  override def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    val array = row.getArray(ordinal)
    val dims  = dimensions(array)
    append(array, dims, 0, payloadOf(dtype))
    if (dims != last.shape) change(dims)
    shape.fold(last)(Sample(dtype, _))
  }

  /** Follows the first array of each level; the other arrays must have the same length. An empty level ends the shape. */
  private def dimensions(array: ArrayData): Seq[Int] = {
    var inner = Option(array)
    (0 until depth).map { level =>
      val count = inner.fold(0)(_.numElements())
      if (level < depth - 1) inner = inner.filter(a => count > 0 && !a.isNullAt(0)).map(_.getArray(0))
      count
    }
  }

  private def append(array: ArrayData, dims: Seq[Int], level: Int, payload: Payload): Unit = {
    if (array.numElements() != dims(level)) throw new InvalidCellException(
      s"arrays of ${dims(level)} and of ${array.numElements()} elements at depth ${level + 1}: only the first dimension of a " +
        "row may differ, in a column that the option `ragged` names. Pad or cut them")
    ArrayEncoder.checkNulls(array)
    if (level == depth - 1) ArrayEncoder.append(array, dtype, elements, payload)
    else {
      var i = 0
      while (i < array.numElements()) {
        append(array.getArray(i), dims, level + 1, payload)
        i += 1
      }
    }
  }

  private def change(dims: Seq[Int]): Unit = {
    shape.foreach(fixed => Sample.checkCount(Sample.count(dims).getOrElse(-1L), fixed))
    last = Sample(dtype, dims)
  }
}
