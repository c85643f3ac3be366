package io.github.semyonsinchenko.safetensors.write

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.connector.metric.CustomMetric
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.github.semyonsinchenko.safetensors.common.{ColumnReference, Metrics}
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, Location}
import io.github.semyonsinchenko.safetensors.write.commit.{Existing, Target}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WriteOptions, WritePlan}
import io.github.semyonsinchenko.safetensors.write.shards.WriteMetrics

/**
 * Checks a write in full, before any task and for EXPLAIN too.
 *
 * @param untruncated what becomes of what is there, if the write does not ask to overwrite it
 * @param like        the columns that the rows must be like, also if the write overwrites; empty if that takes any
 * @param ragged      the columns that stay ragged, also if the write overwrites
 */
private[safetensors] final class SafetensorsWriteBuilder(
    schema: StructType,
    options: CaseInsensitiveStringMap,
    untruncated: Existing,
    conf: Configuration,
    like: Seq[ColumnRecord] = Nil,
    ragged: Seq[String] = Nil)
    extends WriteBuilder
    with SupportsTruncate {

  private var existing = untruncated

  override def truncate(): WriteBuilder = {
    existing = Existing.Replace
    this
  }

  override def build(): Write = {
    val asked =
      WritePlan.of(WriteOptions.of(options), schema).keepingRagged(ragged).appendingTo(like)
    val target = Target.of(Location.one(options, conf), existing, asked, conf)
    val plan   = target.buckets.fold(asked)(asked.inBuckets).appendingTo(target.columns)
    new SafetensorsWrite(plan, target, conf)
  }

  override def buildForBatch(): BatchWrite = build().toBatch
}

/** Spark brings the rows in this distribution and order, by the key's column alone, so that it needs no catalog for it. */
private final class SafetensorsWrite(plan: WritePlan, target: Target, conf: Configuration)
    extends Write
    with RequiresDistributionAndOrdering {

  private val key = plan.mode match {
    case WriteMode.KeyValue(name, _, _, Some(_)) => Some(ColumnReference.of(name))
    case _                                       => None
  }

  override def requiredDistribution(): Distribution =
    key.fold[Distribution](Distributions.unspecified())(column =>
      Distributions.clustered(Array[Expression](column)))

  override def requiredNumPartitions(): Int = plan.buckets.getOrElse(0)

  override def requiredOrdering(): Array[SortOrder] =
    key.map(Expressions.sort(_, SortDirection.ASCENDING)).toArray

  override def description(): String = s"safetensors ${target.directory}"

  // What EXPLAIN shows.
  override def toString: String = description()

  override def toBatch: BatchWrite = new DatasetWrite(plan, target, conf)

  override def supportedCustomMetrics(): Array[CustomMetric] =
    if (Metrics.areLoadable) WriteMetrics.all else Array.empty
}
