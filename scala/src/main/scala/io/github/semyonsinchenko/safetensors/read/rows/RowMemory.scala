package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteSource}

/**
 * The bytes of a batch's rows, and the reads that fill them. Batches reuse the arrays, because Java fills a new array
 * with zeros first. Between batches it keeps at most `2 * LargeBytes` plus one chunk of `ChunkBytes`. During a batch it
 * also holds the bytes of that batch.
 */
private[read] final class RowMemory {
  import RowMemory._

  private val chunks  = mutable.ArrayBuffer.empty[Array[Byte]]
  private val missing = Vector.newBuilder[ByteCopy]
  private val finals  = mutable.ArrayBuffer.empty[() => Unit]
  private var current = 0
  private var used    = 0
  private var batch   = 0L
  private var lacking = 0L

  /** Begins a batch. The rows of the previous batch become invalid. */
  def reset(): Unit = {
    val kept = chunks.iterator.map(_.length.toLong).sum
    if (batch > LargeBytes || kept > 2 * batch + ChunkBytes) chunks.clear()
    // The previous batch may have failed. Its reads belong to another file.
    missing.clear()
    finals.clear()
    lacking = 0
    current = 0
    used = 0
    batch = 0
  }

  /** Reserves `size` bytes and returns their offset in `chunk`. The bytes are not initialized. */
  def reserve(size: Int): Int = {
    while (current < chunks.length && chunks(current).length - used < size) {
      current += 1
      used = 0
    }
    if (current == chunks.length) chunks += new Array[Byte](math.max(size, ChunkBytes))
    val place = used
    used += size
    batch += size
    place
  }

  /** The array of the latest reservation. */
  def chunk: Array[Byte] = chunks(current)

  /** Records bytes that must still be read for a row. */
  def lacks(copy: ByteCopy): Unit = {
    missing += copy
    lacking += copy.count
  }

  def lackingBytes: Long = lacking

  /** Runs this when the missing bytes of the rows are there. */
  def afterwards(complete: () => Unit): Unit = finals += complete

  /** Reads all missing bytes of the rows together. */
  def fill(source: => ByteSource): Unit = {
    val copies = missing.result()
    missing.clear()
    lacking = 0
    if (copies.nonEmpty) source.readAll(copies)
    finals.foreach(_())
    finals.clear()
  }
}

private object RowMemory {

  /** Several times the usual batch size. A larger batch is a single row, and its memory is not kept. */
  val LargeBytes: Long = 64L << 20

  private val ChunkBytes = 256 << 10
}
