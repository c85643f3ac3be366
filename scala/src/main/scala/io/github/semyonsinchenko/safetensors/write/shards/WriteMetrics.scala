package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.github.semyonsinchenko.safetensors.common.{SumMetric, TaskMetric}

/** The metrics of a write in Spark's UI. They are top-level classes without arguments, because the UI loads them by name. */
private[write] object WriteMetrics {
  val all: Array[CustomMetric] =
    Array(new RowsMetric, new BytesMetric, new ShardsMetric, new EncodingTimeMetric, new WritingTimeMetric)
}

final class RowsMetric extends SumMetric("rowsWritten", "rows written")

final class BytesMetric extends SumMetric("bytesWritten", "bytes written")

final class ShardsMetric extends SumMetric("shardsWritten", "shards written")

final class EncodingTimeMetric extends MillisMetric {
  override def name(): String        = "encodingTime"
  override def description(): String = "time encoding, all tasks (ms)"
}

final class WritingTimeMetric extends MillisMetric {
  override def name(): String        = "writingTime"
  override def description(): String = "time writing, all tasks (ms)"
}

/** Sums the nanoseconds of all tasks and shows milliseconds. */
abstract class MillisMetric extends CustomMetric {
  override def aggregateTaskMetrics(nanos: Array[Long]): String = (nanos.sum / 1000000).toString
}

/** The counts of one task, in the order of [[WriteMetrics.all]]. */
private[write] final class WriteCounters {
  var rows          = 0L
  var bytes         = 0L
  var shards        = 0L
  var encodingNanos = 0L
  var writingNanos  = 0L

  def values: Array[CustomTaskMetric] =
    WriteMetrics.all.zip(Seq(rows, bytes, shards, encodingNanos, writingNanos)).map { case (metric, value) =>
      TaskMetric(metric.name, value)
    }

  /** Counts a row, and times one row in sixteen: reading the clock for each row is too slow. Writing time is excluded. */
  def row(body: => Unit): Unit = {
    if (rows % 16 == 0) {
      val start   = System.nanoTime
      val written = writingNanos
      body
      encodingNanos += 16 * (System.nanoTime - start - (writingNanos - written))
    } else body
    rows += 1
  }

  def shard(body: => Long): Unit = {
    val start = System.nanoTime
    bytes += body
    writingNanos += System.nanoTime - start
    shards += 1
  }
}
