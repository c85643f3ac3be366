package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader

/** The rows of a partition's files, one file open at a time. */
private[read] final class FilesReader(
    parts: Seq[FilePart],
    task: TaskPlan,
    conf: Configuration)
    extends PartitionReader[InternalRow] {

  private val metrics              = new TaskMetrics
  private val remaining            = parts.iterator
  private var file: OpenFile       = _
  private var rows                 = Iterator.empty[InternalRow]
  private var current: InternalRow = _
  private var left                 = task.limit.fold(Long.MaxValue)(_.toLong)

  override def next(): Boolean = {
    while (!rows.hasNext && remaining.hasNext) open(remaining.next())
    val found = left > 0 && rows.hasNext
    if (found) {
      current = rows.next()
      left -= 1
    }
    found
  }

  private def open(part: FilePart): Unit = {
    close()
    file = new OpenFile(part, task.names, conf, metrics)
    rows = new RowBatches(file, task.rows.of(file), metrics)
  }

  override def get(): InternalRow = current

  override def currentMetricsValues(): Array[CustomTaskMetric] = metrics.values

  override def close(): Unit = if (file != null) {
    file.close()
    file = null
  }
}

/** Reads the bytes that rows lack: of one row, or of as many as the file's source likes to be asked for together. */
private final class RowBatches(file: OpenFile, planned: Iterator[PlannedRow], metrics: TaskMetrics)
    extends Iterator[InternalRow] {

  private var ready = Iterator.empty[InternalRow]

  override def hasNext: Boolean = ready.hasNext || planned.hasNext

  override def next(): InternalRow = {
    if (!ready.hasNext) ready = batch().iterator
    ready.next()
  }

  private def batch(): Vector[InternalRow] = {
    val rows  = Vector.newBuilder[PlannedRow]
    var bytes = 0L
    do {
      val row = planned.next()
      rows += row
      bytes += row.missing.iterator.map(_.range.count.toLong).sum
    } while (bytes > 0 && bytes < file.source.batchBytes && planned.hasNext)
    read(rows.result())
  }

  private def read(rows: Vector[PlannedRow]): Vector[InternalRow] = {
    val missing = rows.flatMap(_.missing)
    if (missing.nonEmpty) {
      file.source.readAll(missing.map(_.range)).iterator.zip(missing).foreach { case (bytes, place) =>
        place.fill(bytes)
      }
      metrics.tensorBytes += missing.iterator.map(_.range.count.toLong).sum
    }
    rows.map(_.row)
  }
}
