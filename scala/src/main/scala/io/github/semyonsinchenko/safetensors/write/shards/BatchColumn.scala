package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.encode.{CellEncoders, InvalidCellException, Sample}
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.ColumnPlan

/** One column of a batch: its bytes so far, and the dtype and shape that all its rows must have. */
private[write] final class BatchColumn(plan: ColumnPlan, val payload: Payload) {
  private val encoder        = CellEncoders.of(plan)
  private var sample: Sample = _
  private val summary        = new ColumnSummary(plan)

  private val toPayload: Dtype => Payload = _ => payload

  def name: String = plan.name

  def dtype: Dtype = sample.dtype

  def shape: Seq[Int] = sample.shape

  /** Appends the cell of a row to a batch that has `rows` rows. */
  def append(row: InternalRow, rows: Int): Unit = {
    val next = encoder.append(row, plan.ordinal, toPayload)
    if ((next ne sample) && next != sample) {
      if (rows > 0) throw new InvalidCellException(
        s"$next, but the batch began with $sample. Make the rows alike, or write with `name_col`")
      summary.note(next)
      sample = next
    }
  }

  /** Extends a batch of `rows` rows to `batchSize` rows with zeros. */
  def pad(rows: Int, batchSize: Int): Unit = payload.appendZeros(payload.size / rows * (batchSize - rows))

  def discard(): Unit = payload.clear()

  def record: ColumnRecord = summary.record
}
