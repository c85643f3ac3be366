package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** Rows of a file: what does not differ between them is made once. */
private[read] final class RowTemplate(columns: Vector[RowColumn], file: OpenFile) {

  private val fixed: Array[Any] = columns.map {
    case RowColumn.Partition(ordinal) => file.file.partition(ordinal)
    case RowColumn.Metadata(fields)   => FileField.row(fields, file)
    case _: RowColumn.OfLayout        => null
  }.toArray

  private val own = columns.zipWithIndex.collect { case (column: RowColumn.OfLayout, i) => column -> i }

  /** @param cell a value of the layout's column, and the bytes that it lacks */
  def row(cell: RowColumn.OfLayout => (Any, Option[MissingBytes])): PlannedRow = {
    val values = fixed.clone()
    val missing = own.flatMap { case (column, i) =>
      val (value, lacks) = cell(column)
      values(i) = value
      lacks
    }
    PlannedRow(new GenericInternalRow(values), missing)
  }
}
