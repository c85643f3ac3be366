package io.github.semyonsinchenko.safetensors.write

import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.mutable

/**
 * Bytes of a shard that is not closed yet, outside the JVM's heap. Its pages are used again for the next shard.
 */
private[write] final class Payload {
  import Payload._

  private val full  = mutable.ArrayBuffer.empty[ByteBuffer]
  private val spare = mutable.ArrayBuffer.empty[ByteBuffer]
  private var page  = newPage(PageSize)

  def size: Long = full.iterator.map(_.position().toLong).sum + page.position()

  /** A little-endian buffer with room for `count` bytes at its position; what is put there is appended. */
  def room(count: Int): ByteBuffer = {
    if (page.remaining < count) {
      full += page
      page = take(count)
    }
    page
  }

  def append(bytes: ByteBuffer): Unit =
    while (bytes.hasRemaining) {
      val target = room(1)
      val part   = math.min(bytes.remaining, target.remaining)
      target.put(bytes.slice(bytes.position(), part))
      bytes.position(bytes.position() + part)
    }

  def appendZeros(count: Long): Unit = {
    val zeros = ByteBuffer.allocate(math.min(count, PageSize.toLong).toInt)
    var left  = count
    while (left > 0) {
      val part = math.min(left, PageSize.toLong).toInt
      append(zeros.duplicate().limit(part))
      left -= part
    }
  }

  /** Hands all bytes over, in order, and begins anew. */
  def drain(out: ShardFile): Unit = {
    full.foreach(filled => out.write(filled.flip()))
    out.write(page.flip())
    clear()
  }

  /** Forgets all bytes. */
  def clear(): Unit = {
    full.foreach(filled => spare += filled.clear())
    full.clear()
    page.clear()
    ()
  }

  private def take(count: Int): ByteBuffer = spare.indexWhere(_.capacity >= count) match {
    case -1    => newPage(math.max(count, PageSize))
    case index => spare.remove(index)
  }
}

private object Payload {
  private val PageSize = 1 << 20

  private def newPage(size: Int): ByteBuffer = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN)
}
