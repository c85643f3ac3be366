package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.read.columns.RowColumn
import io.github.semyonsinchenko.safetensors.read.conditions.{Conditions, Facts}
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

/**
 * One row per sample. The first dimension of a file's tensors counts the samples, and must be equal for all of them.
 *
 * @param tensors all tensors of the schema, so that the row count does not depend on the selected columns
 */
private[read] final case class SampleRows(
    columns: Vector[RowColumn],
    tensors: Vector[RowColumn.OfTensor],
    conditions: Conditions)
    extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] = {
    val found  = tensors.flatMap(column => file.tensor(column).map(column.name -> _)).toMap
    val stored = found.map { case (name, tensor) => name -> file.stored(tensor) }
    val slices = tensors.flatMap(column =>
      found.get(column.name).map(tensor =>
        column.name -> RowSlices.of(file, tensor, stored(column.name).kind)))
    if (!conditions.hold(Facts(file.file, file.tensor))) Iterator.empty
    else {
      val samples      = count(file, slices.map(_._2))
      val (first, end) = file.samples(samples)
      val byName       = slices.toMap
      val template     = new RowTemplate(columns, file)
      val cells = columns.map {
        case column: RowColumn.OfTensor =>
          byName.get(column.name).fold[Cells](Cells.Null) { rows =>
            rows.select(first, end, samples)
            Cells.of(column, rows, stored(column.name))
          }
        case _ => Cells.Null
      }.toArray
      new Iterator[InternalRow] {
        private var row               = first
        override def hasNext: Boolean = row < end
        override def next(): InternalRow = {
          val made = template.row(i => cells(i).value(row))
          row += 1
          made
        }
      }
    }
  }

  /** The number of samples in the file. The count of a manifest excludes padding. */
  private def count(file: OpenFile, found: Vector[RowSlices]): Long = {
    found.find(_.count != found.head.count).foreach(other =>
      throw new UnreadableFileException(
        s"${file.file.path}: tensor `${found.head.tensor.name}` has ${found.head.count} samples, but `${other.tensor.name}` has ${other.count}. The " +
          "layout `rows` needs the same first dimension: leave one out of the schema, or read with `layout=wide`."))
    file.file.shard.flatMap(_.samples).orElse(found.headOption.map(_.count)).getOrElse(
      throw new UnreadableFileException(
        s"${file.file.path} has none of the tensors in the schema, so its samples cannot be counted."))
  }
}
