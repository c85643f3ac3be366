package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** What Spark's UI shows of a read. Top-level classes without arguments, as the UI makes them by their names. */
private[read] object ReadMetrics {
  val ofTasks: Vector[CustomMetric] =
    Vector(new FilesOpenedMetric, new HeaderBytesMetric, new TensorBytesMetric)
  val all: Array[CustomMetric] = (ofTasks :+ new FilesSkippedMetric).toArray
}

final class FilesOpenedMetric extends CustomSumMetric {
  override def name(): String        = "filesOpened"
  override def description(): String = "files opened"
}

final class HeaderBytesMetric extends CustomSumMetric {
  override def name(): String        = "headerBytesRead"
  override def description(): String = "bytes of headers read"
}

final class TensorBytesMetric extends CustomSumMetric {
  override def name(): String        = "tensorBytesRead"
  override def description(): String = "bytes of tensors read"
}

/** Counted by the driver: files that need not be opened for the query's conditions. */
final class FilesSkippedMetric extends CustomSumMetric {
  override def name(): String        = "filesSkipped"
  override def description(): String = "files skipped by conditions"
}

/** One task's counts so far. */
private[read] final class TaskMetrics {
  var files       = 0L
  var headerBytes = 0L
  var tensorBytes = 0L

  def values: Array[CustomTaskMetric] =
    ReadMetrics.ofTasks.zip(Seq(files, headerBytes, tensorBytes)).map { case (metric, value) =>
      ReadMetric(metric.name, value): CustomTaskMetric
    }.toArray
}

private[read] final case class ReadMetric(name: String, value: Long) extends CustomTaskMetric
