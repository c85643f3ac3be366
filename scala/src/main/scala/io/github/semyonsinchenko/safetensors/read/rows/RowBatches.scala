package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow

/**
 * Rows whose bytes are read together.
 *
 * @param rows   none after the last batch
 * @param memory where they are
 * @param bytes  of their tensors
 */
private[read] final case class RowBatch(
    rows: collection.IndexedSeq[InternalRow],
    memory: RowMemory,
    bytes: Long)

/** The rows of a partition, batch by batch. */
private[read] trait Batches extends AutoCloseable {

  /** The next batch; the rows of the one before are no longer valid. */
  def next(): RowBatch
}

/** Each batch is read when Spark asks for it. */
private[read] final class BatchesInTurn(batches: RowBatches) extends Batches {
  private val memory = new RowMemory

  override def next(): RowBatch = batches.next(memory)

  override def close(): Unit = batches.close()
}

/**
 * The rows of a partition in batches: of one row, or of as many as the source of the file prefers to read together. One file is
 * open at a time.
 *
 * @param limit of rows; the bytes of further rows are not read
 */
private[read] final class RowBatches(
    parts: Seq[FilePart],
    rows: FileRows,
    limit: Option[Int],
    task: TaskState)
    extends AutoCloseable {

  private val remaining      = parts.iterator
  private var file: OpenFile = _
  private var planned        = Iterator.empty[InternalRow]
  private var left           = limit.fold(Long.MaxValue)(_.toLong)

  /** The next batch. It replaces the one that `memory` held. */
  def next(memory: RowMemory): RowBatch = {
    task.memory = memory
    memory.reset()
    while (left > 0 && !planned.hasNext && remaining.hasNext) open(remaining.next())
    val batch = mutable.ArrayBuffer.empty[InternalRow]
    while (left > 0 && planned.hasNext && (batch.isEmpty || isShort(memory))) {
      batch += planned.next()
      left -= 1
    }
    val bytes = memory.lackingBytes
    task.metrics.tensorBytes += bytes
    memory.fill(file.source)
    RowBatch(batch, memory, bytes)
  }

  private def isShort(memory: RowMemory) =
    memory.lackingBytes > 0 && memory.lackingBytes < file.source.batchBytes

  private def open(part: FilePart): Unit = {
    close()
    file = new OpenFile(part, task)
    planned = rows.of(file)
  }

  override def close(): Unit = if (file != null) {
    file.close()
    file = null
  }
}
