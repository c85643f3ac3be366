package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.ByteBuffer

import scala.collection.mutable

/**
 * Bytes of a shard that is not closed yet. The format puts the header first, and the header is known last, so that they
 * must be kept: in pages outside the heap while there are free ones, then in a file on the local disk.
 */
private[write] final class Payload(pages: Pages, openSpill: () => SpillFile) extends AutoCloseable {

  private val full  = mutable.ArrayBuffer.empty[ByteBuffer]
  private var spill = Option.empty[SpillFile]
  private var page  = pages.take(pages.pageSize)
  private var moved = 0L

  /** A little-endian buffer with room for `count` bytes at its position; what is put there is appended. */
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
    else if (spill.isEmpty && pages.hasRoom) full += page
    else {
      if (spill.isEmpty) spill = Some(openSpill())
      spill.get.append(page.flip())
      pages.giveBack(page)
    }
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

  /** Hands all bytes over, in order, and starts again. */
  def drain(out: ByteBuffer => Unit): Unit = {
    full.foreach(filled => out(filled.flip()))
    full.foreach(pages.giveBack)
    full.clear()
    spill.foreach(_.copyTo(out, pages))
    out(page.flip())
    clear()
  }

  /** Forgets all bytes. */
  def clear(): Unit = {
    full.foreach(pages.giveBack)
    full.clear()
    spill.foreach(_.close())
    spill = None
    moved = 0
    page.clear()
    ()
  }

  /** Gives all memory back; nothing can be appended any more. */
  override def close(): Unit = if (page != null) {
    clear()
    pages.giveBack(page)
    page = null
  }
}
