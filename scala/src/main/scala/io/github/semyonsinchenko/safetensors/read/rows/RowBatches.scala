package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.storage.UnreadableFileException

/**
 * Rows whose bytes are read together.
 *
 * @param rows   empty after the last batch
 * @param memory the memory that holds the rows
 * @param bytes  the size of the tensor data
 */
private[read] final case class RowBatch(
    rows: collection.IndexedSeq[InternalRow],
    memory: RowMemory,
    bytes: Long)

/** The rows of a partition, batch by batch. */
private[read] trait Batches extends AutoCloseable {

  /** The next batch. The rows of the previous batch become invalid. */
  def next(): RowBatch
}

/** Reads each batch when Spark requests it. */
private[read] final class BatchesInTurn(batches: RowBatches) extends Batches {
  private val memory = new RowMemory

  override def next(): RowBatch = batches.next(memory)

  override def close(): Unit = batches.close()
}

/**
 * The rows of a partition in batches. A batch has one row, or as many as the file's source prefers to read together.
 * One file is open at a time.
 *
 * @param limit maximum number of rows. The data of further rows is not read.
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

  /** The next batch. It replaces the previous batch in `memory`. */
  def next(memory: RowMemory): RowBatch =
    Iterator.continually(attempt(memory)).collectFirst { case Some(batch) => batch }.get

  /** None if the rest of a file is ignored. */
  private def attempt(memory: RowMemory): Option[RowBatch] = {
    val before = left
    try Some(read(memory))
    catch {
      case e: UnreadableFileException if task.ignored.covers(e) =>
        RowBatches.log.warn(s"Skipped the rest of a file: ${e.getMessage}")
        planned = Iterator.empty
        left = before
        None
    }
  }

  private def read(memory: RowMemory): RowBatch = {
    task.memory = memory
    memory.reset()
    while (left > 0 && !planned.hasNext && remaining.hasNext) open(remaining.next())
    val batch = mutable.ArrayBuffer.empty[InternalRow]
    while (left > 0 && planned.hasNext && (batch.isEmpty || isShort(batch.length, memory))) {
      batch += planned.next()
      left -= 1
    }
    val bytes = memory.lackingBytes
    task.metrics.tensorBytes += bytes
    memory.fill(file.source)
    RowBatch(batch, memory, bytes)
  }

  // Small rows without bytes to read are batched too, as each batch has a fixed cost.
  private def isShort(rows: Int, memory: RowMemory) =
    rows < RowBatches.MaxRows && (memory.lackingBytes == 0 || memory.lackingBytes < file.source.batchBytes)

  private def open(part: FilePart): Unit = {
    close()
    file = new OpenFile(part, task)
    // Needed even if no row needs the file: a count must not include rows of skipped files.
    if (task.ignored.any) file.header
    planned = rows.of(file)
  }

  override def close(): Unit = if (file != null) {
    file.close()
    file = null
  }
}

private object RowBatches {
  private val MaxRows = 4096
  private val log     = LoggerFactory.getLogger(classOf[RowBatches])
}
