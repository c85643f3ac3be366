package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** Rows of a file: what does not differ between them is made once. */
private[read] final class RowTemplate(columns: Vector[RowColumn], file: OpenFile) {

  private val fixed: Array[Any] = columns.map {
    case RowColumn.Partition(ordinal) => file.file.partition(ordinal)
    case RowColumn.Metadata(fields)   => FileField.row(fields, file)
    case _: RowColumn.OfLayout        => null
  }.toArray

  private val own = columns.indices.filter(columns(_).isInstanceOf[RowColumn.OfLayout]).toArray

  /** @param cell a value of the layout's column of that number */
  def row(cell: Int => Any): InternalRow = {
    val values = fixed.clone()
    var i      = 0
    while (i < own.length) {
      values(own(i)) = cell(own(i))
      i += 1
    }
    new GenericInternalRow(values)
  }
}
