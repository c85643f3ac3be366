package io.github.semyonsinchenko.safetensors.write

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.dataset.Location
import io.github.semyonsinchenko.safetensors.write.commit.{Existing, Target}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteOptions, WritePlan}
import io.github.semyonsinchenko.safetensors.write.shards.WriteMetrics

/**
 * Checks a write in full, before any task and for EXPLAIN too.
 *
 * @param untruncated what becomes of what is there, if the write does not ask to overwrite it
 */
private[safetensors] final class SafetensorsWriteBuilder(
    schema: StructType,
    options: CaseInsensitiveStringMap,
    untruncated: Existing,
    conf: Configuration)
    extends WriteBuilder
    with SupportsTruncate {

  private var existing = untruncated

  override def truncate(): WriteBuilder = {
    existing = Existing.Replace
    this
  }

  override def build(): Write = {
    val plan   = WritePlan.of(WriteOptions.of(options), schema)
    val target = Target.of(Location.one(options, conf), existing, plan, conf)
    new SafetensorsWrite(plan, target, conf)
  }

  override def buildForBatch(): BatchWrite = build().toBatch
}

private final class SafetensorsWrite(plan: WritePlan, target: Target, conf: Configuration) extends Write {

  override def description(): String = s"safetensors ${target.directory}"

  // What EXPLAIN shows.
  override def toString: String = description()

  override def toBatch: BatchWrite = new DatasetWrite(plan, target, conf)

  override def supportedCustomMetrics(): Array[CustomMetric] = WriteMetrics.all
}
