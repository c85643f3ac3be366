package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.encode.{CellEncoders, Sample}
import io.github.semyonsinchenko.safetensors.write.plan.ColumnPlan

/**
 * One column of key-value shards.
 *
 * @param isOnly whether there is no other, so that a key alone names a tensor
 */
private[write] final class KeyValueColumn(plan: ColumnPlan, separator: String, isOnly: Boolean) {
  private val encoder = CellEncoders.of(plan)
  private val suffix  = separator + plan.name
  private val summary = new ColumnSummary(plan)

  def name: String = plan.name

  def tensorName(key: String): String = if (isOnly) key else key + suffix

  /** Appends a row's cell to the section of its dtype; the sample, the section, and where in it the bytes begin. */
  def append(row: InternalRow, sectionOf: Dtype => Section): (Sample, Section, Long) = {
    var section: Section = null
    var begin            = 0L
    val sample = encoder.append(row, plan.ordinal,
      dtype => { section = sectionOf(dtype); begin = section.payload.size; section.payload })
    summary.note(sample)
    (sample, section, begin)
  }

  def record: ColumnRecord = summary.record
}
