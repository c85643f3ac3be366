package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.read.columns.{RowColumn, TensorField}
import io.github.semyonsinchenko.safetensors.read.conditions.{Conditions, Facts}
import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

/**
 * One row per sample. The first dimension of a file's tensors counts the samples, and must be equal for all of them.
 *
 * @param tensors all tensors of the schema, so that the row count does not depend on the selected columns
 */
private[read] final case class SampleRows(
    columns: Vector[RowColumn],
    tensors: Vector[RowColumn.Tensor],
    conditions: Conditions)
    extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] = {
    file.file.shard.toSeq.flatMap(_.columns).find(_.kind.hasOffsets).foreach(column =>
      throw new UnreadableFileException(
        s"${file.file.path}: column `${column.name}` is ${column.kind.name}, which the layout `rows` does not read. Read it with " +
          "`layout=wide` or `layout=long`."))
    val needed = columns.collect { case column: RowColumn.Tensor => column.name -> column.fields }.toMap
    val found = tensors.flatMap(column =>
      file.tensor(column).map(tensor =>
        column.name -> new Samples(file, tensor, needed.getOrElse(column.name, Vector.empty)))).toMap
    if (!conditions.hold(Facts(file.file, file.tensor))) Iterator.empty
    else {
      val template = new RowTemplate(columns, file)
      val samples = columns.map {
        case column: RowColumn.Tensor => found.get(column.name)
        case _                        => None
      }
      val (first, end) = file.samples(count(file, tensors.flatMap(column => found.get(column.name))))
      new Iterator[InternalRow] {
        private var row               = first
        override def hasNext: Boolean = row < end
        override def next(): InternalRow = {
          val made = template.row(i => if (samples(i).isEmpty) null else samples(i).get.struct(row))
          row += 1
          made
        }
      }
    }
  }

  /** The number of samples in the file. The count of a manifest excludes padding. */
  private def count(file: OpenFile, found: Vector[Samples]): Long = {
    found.find(_.count != found.head.count).foreach(other =>
      throw new UnreadableFileException(
        s"${file.file.path}: tensor `${found.head.name}` has ${found.head.count} samples, but `${other.name}` has ${other.count}. The " +
          "layout `rows` needs the same first dimension: leave one out of the schema, or read with `layout=wide`."))
    file.file.shard.flatMap(_.samples).orElse(found.headOption.map(_.count)).getOrElse(
      throw new UnreadableFileException(
        s"${file.file.path} has none of the tensors in the schema, so its samples cannot be counted."))
  }
}

/** A tensor as samples along its first dimension, with the needed fields. */
private final class Samples(file: OpenFile, tensor: TensorInfo, fields: Vector[TensorField]) {

  def name: String = tensor.name

  val count: Long =
    tensor.shape.headOption.filter(_ >= 0).getOrElse(refuse("has no first dimension that counts samples"))

  private val size  = if (count == 0) 0L else tensor.size / count
  private val shape = tensor.shape.drop(1)
  private val start = file.start(tensor)
  private val cells = new TensorCell(file, fields)

  // With elements smaller than a byte, a sample may start or end within a byte.
  if (size * count != tensor.size) refuse(s"has samples of ${tensor.dtype} that are not whole bytes")

  def struct(row: Long): InternalRow = cells.struct(tensor, shape, start + row * size, size)

  private def refuse(why: String) = throw new UnreadableFileException(
    s"${file.file.path}: tensor `${tensor.name}` of shape ${tensor.shape.map(
        java.lang.Long.toUnsignedString).mkString("[", ", ", "]")} $why, " +
      "as the layout `rows` needs. Leave it out of the schema, or read with `layout=wide` or `layout=long`.")
}
