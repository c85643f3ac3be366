package io.github.semyonsinchenko.safetensors.read.rows

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.format.{ByteCopy, ByteSource}

/**
 * Where the rows of a batch are made, and the bytes of tensors that they lack as yet. It is used again for the next batch: a new
 * array for each row would be filled with zeros first.
 */
private[read] final class RowMemory {
  import RowMemory._

  private val chunks  = mutable.ArrayBuffer.empty[Array[Byte]]
  private val missing = Vector.newBuilder[ByteCopy]
  private var current = 0
  private var used    = 0
  private var batch   = 0L
  private var lacking = 0L

  /** Begins a batch: what was reserved before is used again. */
  def reset(): Unit = {
    // Not for ever as much as the largest row took.
    if (chunks.iterator.map(_.length.toLong).sum > 2 * batch + ChunkBytes) chunks.clear()
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
  private val ChunkBytes = 256 << 10
}
