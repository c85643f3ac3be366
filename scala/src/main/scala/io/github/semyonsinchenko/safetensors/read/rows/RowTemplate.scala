package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

import io.github.semyonsinchenko.safetensors.read.columns.{FileField, RowColumn}

/** Creates the rows of a file. Values that are the same in all rows are created once. */
private[read] final class RowTemplate(columns: Vector[RowColumn], file: OpenFile) {

  private val fixed: Array[Any] = columns.map {
    case RowColumn.Partition(ordinal) => file.file.partition(ordinal)
    case RowColumn.Metadata(fields)   => metadata(fields)
    case _: RowColumn.OfLayout        => null
  }.toArray

  private def metadata(fields: Vector[FileField]): InternalRow = new GenericInternalRow(fields.map {
    case FileField.FileModificationTime => FileField.FileModificationTime.of(file.listed)
    case known: FileField.Known         => known.of(file.file)
    case FileField.HeaderMetadata       => FileField.HeaderMetadata.of(file.header)
  }.toArray[Any])

  private val own = columns.indices.filter(columns(_).isInstanceOf[RowColumn.OfLayout]).toArray

  /** @param cell returns the value of a layout column by its index */
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
