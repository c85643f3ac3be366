package io.github.semyonsinchenko.safetensors.read.rows

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.github.semyonsinchenko.safetensors.common.{SumMetric, TaskMetric}

/** The metrics of a read in Spark's UI, which creates them by class name: they are top-level and take no arguments. */
private[read] object ReadMetrics {
  val ofTasks: Vector[CustomMetric] =
    Vector(new FilesOpenedMetric, new HeaderBytesMetric, new TensorBytesMetric)
  val all: Array[CustomMetric] = (ofTasks :+ new FilesSkippedMetric).toArray
}

final class FilesOpenedMetric extends SumMetric("filesOpened", "files opened")

final class HeaderBytesMetric extends SumMetric("headerBytesRead", "bytes of headers read")

final class TensorBytesMetric extends SumMetric("tensorBytesRead", "bytes of tensors read")

/** Files that the query's conditions exclude. The driver counts them. */
final class FilesSkippedMetric extends SumMetric("filesSkipped", "files skipped by conditions")

/** The counters of one task. */
private[read] final class ReadCounters {
  var files       = 0L
  var headerBytes = 0L
  var tensorBytes = 0L

  def values: Array[CustomTaskMetric] =
    ReadMetrics.ofTasks.zip(Seq(files, headerBytes, tensorBytes)).map { case (metric, value) =>
      TaskMetric(metric.name, value): CustomTaskMetric
    }.toArray
}
