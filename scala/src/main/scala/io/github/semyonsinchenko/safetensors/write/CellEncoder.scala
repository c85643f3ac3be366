package io.github.semyonsinchenko.safetensors.write

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.format.Dtype

/** A sample's dtype and shape. */
private[write] final case class Sample(dtype: Dtype, shape: Seq[Int]) {

  override def toString: String = s"$dtype ${Sample.show(shape)}"
}

private[write] object Sample {

  def show(shape: Seq[Int]): String = shape.mkString("[", ", ", "]")

  /** Elements of a shape; none where they do not fit 64 bits. */
  def count(shape: Seq[Int]): Option[Long] =
    try Some(shape.foldLeft(1L)(Math.multiplyExact(_, _)))
    catch { case _: ArithmeticException => None }
}

/** Turns the cells of one column into tensors' bytes; chosen once for the column. */
private[write] trait CellEncoder {

  /**
   * Appends a cell's bytes to the payload for its dtype, and tells what sample it is. The cell is not null.
   *
   * @throws InvalidCellException if it is no tensor
   */
  def encode(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample
}

/** What is wrong with a cell; the caller adds the column and the row. */
private[write] final class InvalidCellException(message: String)
    extends RuntimeException(message, null, false, false)

private[write] object CellEncoder {

  def of(column: ColumnPlan): CellEncoder = column.cells match {
    case CellType.Tensor => new TensorEncoder(column.dtype, column.shape)
    case CellType.Numbers(number, containsNull) =>
      val dtype = column.dtype.getOrElse(number.dtype)
      new ArrayEncoder(dtype, number.encoder(dtype, column.rounding), column.shape, containsNull)
  }
}
