package io.github.semyonsinchenko.safetensors.write.encode

import io.github.semyonsinchenko.safetensors.write.plan.{CellType, ColumnPlan}

/** Chooses the encoder for a column. */
private[write] object CellEncoders {

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
