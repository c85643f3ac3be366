package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.ByteBuffer

import scala.collection.mutable

/**
 * The tensor bytes of an open shard. A file begins with its header, which is known only when the shard closes, so the bytes
 * wait: in pages, and in a file on the local disk when there is no memory for more pages.
 */
private[write] final class Payload(pages: Pages, openSpill: () => SpillFile) extends AutoCloseable {

  private val full    = mutable.ArrayBuffer.empty[ByteBuffer]
  private var spilled = Option.empty[SpillFile]
  private var page    = pages.take(pages.pageSize)
  private var moved   = 0L

  pages.onSpill(() => spill())

  /** A little-endian buffer with room for `count` bytes at its position. What is put there is appended. */
  def room(count: Int): ByteBuffer = {
    if (page.remaining < count) {
      retire()
      page = pages.take(count)
    }
    page
  }

  private def retire(): Unit = {
    moved += page.position()
    if (page.position() == 0) pages.giveBack(page)
    else {
      full += page
      if (!pages.reserve()) spill()
    }
  }

  /** Moves the full pages to the local disk. */
  private def spill(): Unit = if (full.nonEmpty) {
    if (spilled.isEmpty) spilled = Some(openSpill())
    full.foreach(filled => spilled.get.append(filled.flip()))
    giveBackFull()
  }

  private def giveBackFull(): Unit = {
    full.foreach(pages.giveBack)
    full.clear()
  }

  def append(bytes: ByteBuffer): Unit =
    while (bytes.hasRemaining) {
      val target = room(1)
      val part   = math.min(bytes.remaining, target.remaining)
      target.put(bytes.slice(bytes.position(), part))
      bytes.position(bytes.position() + part)
    }

  def appendZeros(count: Long): Unit = {
    val zeros = ByteBuffer.allocate(math.min(count, pages.pageSize.toLong).toInt)
    var left  = count
    while (left > 0) {
      val part = math.min(left, zeros.capacity.toLong).toInt
      append(zeros.duplicate().limit(part))
      left -= part
    }
  }

  def size: Long = moved + page.position()

  /** Passes all bytes to `out`, in order, and clears the payload. */
  def drain(out: ByteBuffer => Unit): Unit = {
    spilled.foreach(_.copyTo(out, pages))
    full.foreach(filled => out(filled.flip()))
    out(page.flip())
    clear()
  }

  def clear(): Unit = {
    giveBackFull()
    spilled.foreach(_.close())
    spilled = None
    moved = 0
    page.clear()
    ()
  }

  /** Gives back all memory. Nothing can be appended afterwards. */
  override def close(): Unit = if (page != null) {
    clear()
    pages.giveBack(page)
    page = null
  }
}
