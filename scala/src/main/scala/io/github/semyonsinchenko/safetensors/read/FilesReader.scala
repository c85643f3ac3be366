package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.PartitionReader

import io.github.semyonsinchenko.safetensors.read.rows._

/**
 * Reads the rows of a partition's files.
 *
 * @param isRemote whether reads wait for a network. If so, the reader reads ahead.
 */
private[read] final class FilesReader(
    parts: Seq[FilePart],
    task: TaskPlan,
    conf: Configuration,
    isRemote: Boolean)
    extends PartitionReader[InternalRow] {

  private val state            = new TaskState(task.names, task.caseSensitive, task.ignored, conf)
  private val made             = new RowBatches(parts, task.rows, task.limit, state)
  private val batches: Batches = if (isRemote) new BatchesAhead(made) else new BatchesInTurn(made)
  private var rows             = collection.IndexedSeq.empty[InternalRow]
  private var place            = 0

  override def next(): Boolean = {
    place += 1
    if (place >= rows.length) {
      // The previous rows may be large. Drop them, so that they can be freed before the next read.
      rows = collection.IndexedSeq.empty
      rows = batches.next().rows
      place = 0
    }
    rows.nonEmpty
  }

  override def get(): InternalRow = rows(place)

  override def currentMetricsValues(): Array[CustomTaskMetric] = state.metrics.values

  override def close(): Unit = batches.close()
}
