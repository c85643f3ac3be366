package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.github.semyonsinchenko.safetensors.common.{SumMetric, TaskMetric}

/** What Spark's UI shows of a write. Top-level classes without arguments, as the UI makes them by their names. */
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

/** Nanoseconds of the tasks, summed and shown as milliseconds. */
abstract class MillisMetric extends CustomMetric {
  override def aggregateTaskMetrics(nanos: Array[Long]): String = (nanos.sum / 1000000).toString
}

/** One task's counts so far, for the metrics of [[WriteMetrics.all]] in that order. */
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

  /** Counts a row, and of one in sixteen the time that `body` takes besides writing: a clock for each would cost more. */
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
