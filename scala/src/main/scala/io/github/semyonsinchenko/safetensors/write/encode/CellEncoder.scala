package io.github.semyonsinchenko.safetensors.write.encode

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.{CellType, ColumnPlan}

/** Turns the cells of one column into tensors' bytes; chosen once for the column. */
private[write] trait CellEncoder {

  /**
   * Appends the bytes of a row's cell, as [[encode]] does.
   *
   * @throws InvalidCellException if it is null or no tensor
   */
  final def append(row: InternalRow, ordinal: Int, payloadOf: Dtype => Payload): Sample = {
    if (row.isNullAt(ordinal))
      throw new InvalidCellException("null, and tensors have no nulls. Fill it, or filter the row out")
    encode(row, ordinal, payloadOf)
  }

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
    case numbers: CellType.Numbers =>
      val dtype    = column.dtype.getOrElse(numbers.number.dtype)
      val elements = numbers.number.encoder(dtype, column.rounding)
      def arrays(shape: Option[Seq[Int]], containsNull: Boolean)(values: CellValues) =
        new ArrayEncoder(dtype, elements, shape, containsNull, values)
      numbers match {
        case CellType.Scalars(number) =>
          arrays(column.shape.orElse(Some(Nil)), containsNull = false)(number.single(_, _))
        case CellType.Arrays(_, containsNull) => arrays(column.shape, containsNull)(_.getArray(_))
        case CellType.Vectors                 => arrays(column.shape, containsNull = false)(VectorValues)
        case CellType.Nested(_, depth)        => new NestedEncoder(dtype, elements, column.shape, depth)
      }
  }
}
