package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.read.columns.RowColumn
import io.github.semyonsinchenko.safetensors.read.conditions.Conditions

/**
 * Each tensor as a row: its name and, as far as the query needs it, its Tensor Struct. In the order of the tensors' bytes.
 *
 * @param conditions a row is only made of a tensor that meets them
 */
private[read] final case class LongRows(columns: Vector[RowColumn], conditions: Conditions) extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] = {
    val template = new RowTemplate(columns, file)
    file.tensors.iterator
      .filter(tensor => conditions.hold(file.file, tensor))
      .map(tensor => template.row(i => cell(file, tensor, columns(i))))
  }

  private def cell(
      file: OpenFile,
      tensor: TensorInfo,
      column: RowColumn): Any =
    column match {
      case RowColumn.Key => UTF8String.fromString(tensor.name)
      case RowColumn.Tensor(_, fields, _) =>
        new TensorCell(file, tensor, tensor.shape, fields).struct(file.start(tensor), tensor.size)
      case other => throw new IllegalStateException(s"the layout has no column $other")
    }
}
