package io.github.semyonsinchenko.safetensors.write.commit

import io.github.semyonsinchenko.safetensors.dataset.ShardRecord
import io.github.semyonsinchenko.safetensors.write.plan.{BatchRows, WriteMode, WritePlan}

/** What to say of a batch that makes shards far smaller than `target_shard_size_mb`. */
private[write] object BatchSizeAdvice {

  // Smaller ones cost more to open than to read.
  private val Far = 10

  /** None for a batch that is well, and for data that has no more to give. */
  def of(plan: WritePlan, shards: Seq[ShardRecord]): Option[String] = plan.mode match {
    case WriteMode.Batch(BatchRows.Exactly(rows), _) if shards.map(_.bytes).sum > plan.shardBytes =>
      val full = shards.filter(_.samples == rows)
      Option.when(full.nonEmpty)(full.map(_.bytes).sum / full.size).filter(_ * Far < plan.shardBytes)
        .map(advice(rows, _, plan.shardBytes))
    case _ => None
  }

  private def advice(rows: Int, bytes: Long, target: Long): String = {
    val suited = math.min(rows.toLong * target / bytes, Int.MaxValue.toLong)
    f"Option `batch_size` is $rows, which makes shards of ${bytes / 1e6}%.1f MB, far under the ${target / 1000000} MB of " +
      s"`target_shard_size_mb`: many small files are slow to list and open. A `batch_size` of about $suited or `auto` would suit."
  }
}
