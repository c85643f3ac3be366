package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader

import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, OpenFile, RowBatches, TaskState}

/** The rows of a partition's files, one file open at a time. */
private[read] final class FilesReader(
    parts: Seq[FilePart],
    task: TaskPlan,
    conf: Configuration)
    extends PartitionReader[InternalRow] {

  private val state                = new TaskState(task.names, conf)
  private val remaining            = parts.iterator
  private var file: OpenFile       = _
  private var rows                 = Iterator.empty[InternalRow]
  private var current: InternalRow = _
  private var left                 = task.limit.fold(Long.MaxValue)(_.toLong)

  override def next(): Boolean = {
    while (left > 0 && !rows.hasNext && remaining.hasNext) open(remaining.next())
    val found = left > 0 && rows.hasNext
    if (found) {
      current = rows.next()
      left -= 1
    }
    found
  }

  private def open(part: FilePart): Unit = {
    close()
    file = new OpenFile(part, state)
    rows = new RowBatches(file, task.rows.of(file))
  }

  override def get(): InternalRow = current

  override def currentMetricsValues(): Array[CustomTaskMetric] = state.metrics.values

  override def close(): Unit = if (file != null) {
    file.close()
    file = null
  }
}
