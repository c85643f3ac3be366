package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord

/** Writes the rows of a task to shards. */
private[write] trait ShardWriter extends AutoCloseable {

  /** @throws InvalidRowException if the row cannot be written */
  def write(row: InternalRow): Unit

  /** Writes the remaining rows. */
  def finish(): Unit

  /** The columns with the dtypes and shapes of the rows written. */
  def schema: Seq[ColumnRecord]
}
