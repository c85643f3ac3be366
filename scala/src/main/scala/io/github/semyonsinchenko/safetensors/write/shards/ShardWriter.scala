package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord

/** Turns the rows of a task into shards. */
private[write] trait ShardWriter extends AutoCloseable {

  /** @throws InvalidRowException if it cannot be written */
  def write(row: InternalRow): Unit

  /** Writes what is not written yet. */
  def finish(): Unit

  /** What the columns turned out to be. */
  def schema: Seq[ColumnRecord]
}
