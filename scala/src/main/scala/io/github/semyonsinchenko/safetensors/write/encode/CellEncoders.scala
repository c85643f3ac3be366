package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.write.plan.{CellType, ColumnPlan}

/** Chooses the encoder for a column. */
private[write] object CellEncoders {

  def of(column: ColumnPlan): CellEncoder = column.cells match {
    case CellType.Tensor => new TensorEncoder(column.dtype, shapeOf(column), column.isText)
    case CellType.Text   => BytesEncoder.text
    case CellType.Bytes  => BytesEncoder.binary
    case numbers: CellType.Numbers =>
      val dtype    = column.dtype.getOrElse(numbers.number.dtype)
      val elements = numbers.number.encoder(dtype, column.rounding)
      def arrays(shape: Option[Seq[Int]], containsNull: Boolean)(values: CellValues) =
        new ArrayEncoder(dtype, elements, shape, containsNull, values)
      numbers match {
        case CellType.Scalars(number) =>
          arrays(column.shape, containsNull = false)(number.single(_, _))
        case CellType.Arrays(_, containsNull) => arrays(shapeOf(column), containsNull)(_.getArray(_))
        case CellType.Vectors                 => arrays(shapeOf(column), containsNull = false)(VectorValues)
        case CellType.Nested(_, depth)        => new NestedEncoder(dtype, elements, shapeOf(column), depth)
      }
  }

  /** The shape of every sample, if there is one. */
  private def shapeOf(column: ColumnPlan): Option[Seq[Int]] =
    if (column.kind.hasOffsets) None else column.shape
}
