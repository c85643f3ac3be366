package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.encode.{CellEncoders, InvalidCellException, Sample}
import io.github.semyonsinchenko.safetensors.write.memory.Payload
import io.github.semyonsinchenko.safetensors.write.plan.ColumnPlan

/**
 * A column whose rows differ in their first dimension: a tensor with the values of all rows, and one with the offsets at which
 * they begin.
 */
private[write] final class RaggedColumn(plan: ColumnPlan, payload: Payload, offsets: Payload)
    extends BatchColumn {
  private val encoder = CellEncoders.of(plan)
  private var dtype   = plan.dtype
  // The shape of one value. A row without values does not always define it: that of an empty array of arrays is unknown.
  private var shape = plan.shape
  private var rank  = 0
  private var count = 0L

  private val toPayload: Dtype => Payload = _ => payload

  override def name: String = plan.name

  override def append(row: InternalRow, rows: Int): Unit = {
    val next = encoder.append(row, plan.ordinal, toPayload)
    check(next)
    if (rows == 0) {
      count = 0
      putOffset()
    }
    count += next.shape.head
    putOffset()
  }

  private def check(next: Sample): Unit = {
    if (next.shape.isEmpty) throw new InvalidCellException(
      s"$next, and the rows of a ragged column have a first dimension. Leave the column out of the option `ragged`")
    // An empty array of arrays has zeros as its other dimensions.
    val isUnknown = next.shape.forall(_ == 0)
    if (isUnknown) rank = next.shape.size
    if (!dtype.contains(next.dtype) || !isUnknown && !shape.contains(next.shape.tail))
      change(next, if (isUnknown) None else Some(next.shape.tail))
  }

  private def change(next: Sample, value: Option[Seq[Int]]): Unit = {
    val found = plan.record(Some(next.dtype), value)
    def refuse(known: ColumnRecord, have: String, remedy: String) = throw new InvalidCellException(
      s"$next, but $have ${Difference.show(known)}. $remedy")
    plan.existing.filter(Difference.between(found, _)).foreach(known =>
      refuse(known, "the rows of the dataset have", Difference.remedyInDataset(found, known)))
    if (Difference.between(found, record))
      refuse(record, "rows before it have", Difference.remedy(found, record))
    dtype = Some(next.dtype)
    shape = shape.orElse(value)
  }

  private def putOffset(): Unit = { offsets.room(java.lang.Long.BYTES).putLong(count); () }

  override def bytes: Long = payload.size + offsets.size

  /** Extends the batch with empty rows. */
  override def pad(rows: Int, batchSize: Int): Unit = (rows until batchSize).foreach(_ => putOffset())

  override def tensors(rows: Int): Seq[BatchTensor] = {
    val value = shape.orElse(plan.existing.flatMap(_.shape)).getOrElse(Seq.fill(rank - 1)(0))
    Seq(
      BatchTensor(name, dtype.get, count +: value.map(_.toLong), payload),
      BatchTensor(ColumnKind.offsetsOf(name), Dtype.I64, Seq(rows + 1L), offsets))
  }

  override def discard(): Unit = {
    payload.clear()
    offsets.clear()
  }

  override def record: ColumnRecord = plan.record(dtype, shape)

  override def close(): Unit =
    try payload.close()
    finally offsets.close()
}
