package io.github.semyonsinchenko.safetensors.read

/** One file as one row: a column for each tensor that the query needs. */
private[read] final case class WideRows(columns: Vector[RowColumn], conditions: Conditions) extends FileRows {

  override def of(file: OpenFile): Iterator[PlannedRow] =
    if (!conditions.hold(Facts(file.file, file.tensor))) Iterator.empty
    else Iterator.single(new RowTemplate(columns, file).row {
      case column: RowColumn.Tensor =>
        file.tensor(column).fold[(Any, Option[MissingBytes])]((null, None))(tensor =>
          new TensorCell(file, tensor, tensor.shape).struct(file.start(tensor), tensor.size, column.fields))
      case RowColumn.Key => throw new IllegalStateException("the layout has no keys")
    })
}
