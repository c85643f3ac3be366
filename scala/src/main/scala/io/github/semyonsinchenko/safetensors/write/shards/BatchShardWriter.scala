package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.format.{HeaderWriter, TensorInfo}
import io.github.semyonsinchenko.safetensors.write.encode.InvalidRowException
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.{BatchRows, Tail, WriteMode, WritePlan}

/** Stacks rows: each column becomes one tensor of the shard, or two if its rows have different lengths. */
private[write] final class BatchShardWriter(
    plan: WritePlan,
    mode: WriteMode.Batch,
    partition: Int,
    newPayload: () => Payload,
    shards: Shards)
    extends ShardWriter {

  private val columns = plan.columns.map { column =>
    if (column.kind.hasOffsets) new RaggedColumn(column, newPayload(), newPayload())
    else new FixedColumn(column, newPayload())
  }
  private val limit = mode.rows match {
    case BatchRows.Exactly(count) => count
    case BatchRows.Filling        => Int.MaxValue
  }
  private val fills   = mode.rows == BatchRows.Filling
  private var rows    = 0
  private var written = 0L
  private var bytes   = 0L
  private var lastRow = 0L

  override def write(row: InternalRow): Unit = {
    // Rows are mostly as large as the one before.
    if (fills && rows > 0 && bytes + lastRow > plan.shardBytes) closeShard(rows)
    var i = 0
    while (i < columns.length) {
      val column = columns(i)
      InvalidRowException.locating(column.name, s"row $written of partition $partition")(
        column.append(row, rows))
      i += 1
    }
    rows += 1
    written += 1
    if (fills) count()
    if (rows == limit) closeShard(rows)
  }

  private def count(): Unit = {
    val before = bytes
    bytes = 0
    columns.foreach(bytes += _.bytes)
    lastRow = bytes - before
  }

  /** Applies the tail strategy to the remaining rows. */
  override def finish(): Unit = if (rows > 0) mode.tail match {
    case Tail.Write => closeShard(rows)
    case Tail.Drop  => columns.foreach(_.discard())
    case Tail.Pad   => columns.foreach(_.pad(rows, limit)); closeShard(limit)
  }

  override def schema: Seq[ColumnRecord] = columns.map(_.record)

  override def close(): Unit = columns.foreach(_.close())

  private def closeShard(leading: Int): Unit = {
    val sorted = columns.flatMap(_.tensors(leading)).sortBy(t => (t.dtype, t.name))(HeaderWriter.order)
    shards.write(place(sorted), rows.toLong)(out => sorted.foreach(_.payload.drain(out)))
    rows = 0
    bytes = 0
  }

  private def place(sorted: Seq[BatchTensor]): Seq[TensorInfo] = {
    var begin = 0L
    sorted.map { tensor =>
      val end    = begin + tensor.payload.size
      val placed = TensorInfo(tensor.name, tensor.dtype, tensor.shape.toVector, begin, end)
      begin = end
      placed
    }
  }
}
