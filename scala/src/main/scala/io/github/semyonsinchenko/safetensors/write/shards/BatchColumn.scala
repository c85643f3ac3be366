package io.github.semyonsinchenko.safetensors.write.shards

import org.apache.spark.sql.catalyst.InternalRow

import io.github.semyonsinchenko.safetensors.dataset.ColumnRecord
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/** A tensor of an open batch, whose bytes are in `payload`. */
private[write] final case class BatchTensor(name: String, dtype: Dtype, shape: Seq[Long], payload: Payload)

/** One column of a batch. All rows of a task have one dtype and shape, except for the first dimension of ragged rows. */
private[write] trait BatchColumn extends AutoCloseable {

  def name: String

  /**
   * Appends the cell of a row to a batch that has `rows` rows.
   *
   * @throws InvalidCellException if the cell is not a valid tensor, or is not like the rows before
   */
  def append(row: InternalRow, rows: Int): Unit

  /** The bytes of the batch. */
  def bytes: Long

  /** Extends a batch of `rows` rows to `batchSize` rows. */
  def pad(rows: Int, batchSize: Int): Unit

  /** The tensors of a batch of `rows` rows. */
  def tensors(rows: Int): Seq[BatchTensor]

  /** Forgets the rows of the batch. */
  def discard(): Unit

  /** The column with the dtype and shape of the rows so far. */
  def record: ColumnRecord
}
