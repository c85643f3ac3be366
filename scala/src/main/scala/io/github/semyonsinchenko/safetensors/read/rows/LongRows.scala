package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.format.{TensorInfo, Utf8Order}
import io.github.semyonsinchenko.safetensors.read.columns.RowColumn
import io.github.semyonsinchenko.safetensors.read.conditions.Conditions

/**
 * One row per tensor: its name and the needed fields of its Tensor Struct. Rows are in the order of the tensor data, or
 * sorted by key if the shard is in a key bucket.
 *
 * @param conditions tensors that do not satisfy them give no row
 */
private[read] final case class LongRows(columns: Vector[RowColumn], conditions: Conditions) extends FileRows {

  override def of(file: OpenFile): Iterator[InternalRow] = {
    val template = new RowTemplate(columns, file)
    val cells    = columns.map(cell(file, _))
    LongRows.inOrder(file).iterator
      .filter(tensor => conditions.hold(file.file, tensor))
      .map(tensor => template.row(i => cells(i)(tensor)))
  }

  private def cell(file: OpenFile, column: RowColumn): TensorInfo => Any = column match {
    case RowColumn.Key => tensor => UTF8String.fromString(tensor.name)
    case RowColumn.Tensor(_, fields, _) =>
      val cell = new TensorCell(file, fields)
      tensor => cell.struct(tensor, tensor.shape, file.start(tensor), tensor.size)
    case _ => _ => throw new IllegalStateException(s"$column differs between files only")
  }
}

private[read] object LongRows {

  // A scan of buckets reports this order to Spark. In a shard with several dtypes, the tensor data has another order.
  private[rows] def inOrder(file: OpenFile): IndexedSeq[TensorInfo] =
    if (file.file.shard.exists(_.bucket.isDefined)) file.tensors.sortBy(_.name)(Utf8Order) else file.tensors
}
