package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.encode.{CellEncoders, InvalidCellException, Sample}
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.ColumnPlan

/** A column whose rows have one shape: one tensor, whose first dimension counts the rows. */
private[write] final class FixedColumn(plan: ColumnPlan, payload: Payload) extends BatchColumn {
  private val encoder        = CellEncoders.of(plan)
  private var sample: Sample = _

  private val toPayload: Dtype => Payload = _ => payload

  override def name: String = plan.name

  override def append(row: InternalRow, rows: Int): Unit = {
    val next = encoder.append(row, plan.ordinal, toPayload)
    if ((next ne sample) && next != sample) {
      val record = recordOf(next)
      plan.existing.filter(Difference.between(_, record)).foreach(known =>
        refuse(record, known, "the rows of the dataset have", Difference.remedyInDataset(record, known)))
      if (sample != null) {
        val known = recordOf(sample)
        refuse(record, known, "rows before it have", Difference.remedy(record, known))
      }
      sample = next
    }
  }

  private def recordOf(sample: Sample) = plan.record(Some(sample.dtype), Some(sample.shape))

  private def refuse(found: ColumnRecord, known: ColumnRecord, have: String, remedy: String): Unit =
    throw new InvalidCellException(
      s"${Difference.show(found)}, but $have ${Difference.show(known)}. $remedy")

  override def bytes: Long = payload.size

  /** Extends the batch with zeros. */
  override def pad(rows: Int, batchSize: Int): Unit =
    payload.appendZeros(payload.size / rows * (batchSize - rows))

  override def tensors(rows: Int): Seq[BatchTensor] =
    Seq(BatchTensor(name, sample.dtype, (rows +: sample.shape).map(_.toLong), payload))

  override def discard(): Unit = payload.clear()

  override def record: ColumnRecord =
    if (sample == null) plan.record(plan.dtype, plan.shape) else recordOf(sample)

  override def close(): Unit = payload.close()
}
