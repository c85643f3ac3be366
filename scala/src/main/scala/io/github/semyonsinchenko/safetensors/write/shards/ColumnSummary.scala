package io.github.semyonsinchenko.safetensors.write.shards

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.write.encode.Sample
import io.github.semyonsinchenko.safetensors.write.plan.ColumnPlan

/** The dtype and shape that all samples of a column share. */
private[write] final class ColumnSummary(plan: ColumnPlan) {
  private var first: Sample = _
  private var sameDtype     = true
  private var sameShape     = true

  def note(sample: Sample): Unit =
    if (first == null) first = sample
    else if (sample ne first) {
      sameDtype &&= sample.dtype == first.dtype
      sameShape &&= sample.shape == first.shape
    }

  /** Without samples, the dtype and shape of the options. */
  def record: ColumnRecord =
    if (first == null) plan.record(plan.dtype, plan.shape)
    else plan.record(Option.when(sameDtype)(first.dtype), Option.when(sameShape)(first.shape))
}

private[write] object ColumnSummary {

  /**
   * Merges the columns of several parts of a dataset. A dtype or shape is kept if all parts agree on it.
   *
   * @param parts all have the same columns; those without rows may be left out
   */
  def merge(parts: Seq[Seq[ColumnRecord]]): Seq[ColumnRecord] =
    parts.headOption.toSeq.flatten.map { first =>
      val records = parts.flatMap(_.find(_.name == first.name))
      first.copy(dtype = agreed(records.map(_.dtype)), shape = agreed(records.map(_.shape)),
        sparkType = records.flatMap(_.sparkType).headOption)
    }

  private def agreed[A](values: Seq[Option[A]]): Option[A] =
    if (values.distinct.size == 1) values.head else None
}
