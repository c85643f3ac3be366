package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteSource}

/**
 * The bytes of a batch's rows, and the reads that fill them. Batches reuse the arrays, because a new array is filled with zeros
 * first. Between batches it keeps at most `2 * LargeBytes` and a chunk of usual size; while a batch is made, the bytes of that
 * batch as well.
 */
private[read] final class RowMemory {
  import RowMemory._

  private val chunks  = mutable.ArrayBuffer.empty[Array[Byte]]
  private val missing = Vector.newBuilder[ByteCopy]
  private var current = 0
  private var used    = 0
  private var batch   = 0L
  private var lacking = 0L

  /** Begins a batch. The rows of the one before are no longer valid. */
  def reset(): Unit = {
    val kept = chunks.iterator.map(_.length.toLong).sum
    if (batch > LargeBytes || kept > 2 * batch + ChunkBytes) chunks.clear()
    // The batch before may have failed. Its reads are those of another file.
    missing.clear()
    lacking = 0
    current = 0
    used = 0
    batch = 0
  }

  /** The place in `chunk` from which on `size` bytes are free; they hold anything. */
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

  /** Where the latest place is. */
  def chunk: Array[Byte] = chunks(current)

  /** Notes bytes that a row lacks. */
  def lacks(copy: ByteCopy): Unit = {
    missing += copy
    lacking += copy.count
  }

  def lackingBytes: Long = lacking

  /** Reads what the rows lack, all together. */
  def fill(source: => ByteSource): Unit = {
    val copies = missing.result()
    missing.clear()
    lacking = 0
    if (copies.nonEmpty) source.readAll(copies)
  }
}

private object RowMemory {

  /** Several batches of usual size. A larger batch is a single row; its memory is not kept. */
  val LargeBytes: Long = 64L << 20

  private val ChunkBytes = 256 << 10
}
