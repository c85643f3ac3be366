package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.read.columns.RowColumn
import io.github.semyonsinchenko.safetensors.read.conditions.{Conditions, Facts}

/** One file as one row: a column for each tensor that the query needs. */
private[read] final case class WideRows(columns: Vector[RowColumn], conditions: Conditions) extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] =
    Iterator(file).filter(_ => conditions.hold(Facts(file.file, file.tensor))).map(row)

  private def row(file: OpenFile): InternalRow = new RowTemplate(columns, file).row(columns(_) match {
    case column: RowColumn.Tensor =>
      file.tensor(column).map(tensor =>
        new TensorCell(file, column.fields).struct(tensor, tensor.shape, file.start(tensor),
          tensor.size)).orNull
    case other => throw new IllegalStateException(s"the layout has no column $other")
  })
}
