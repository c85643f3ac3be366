package io.github.semyonsinchenko.safetensors.write.memory

import java.lang.ref.WeakReference
import java.nio.{ByteBuffer, ByteOrder}
import java.util.concurrent.ConcurrentLinkedDeque

import scala.annotation.tailrec
import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.storage.DirectMemory

/**
 * The direct memory of a task's open shards: little-endian pages that payloads use again and again. Payloads keep within the
 * limit, except for one page each and for a row that is larger than a page: without them nothing can be written. A closed one
 * leaves its pages to the next tasks of the JVM.
 *
 * @param limit    bytes of all pages together
 * @param pageSize bytes of a page
 */
private[write] final class Pages(limit: Long, val pageSize: Int) extends AutoCloseable {
  private val spare = mutable.ArrayBuffer.empty[ByteBuffer]
  private var taken = 0L

  /** Whether the limit allows to keep a full page and to take another. */
  def hasRoom: Boolean = taken <= limit && (spare.nonEmpty || taken + pageSize <= limit)

  /** An empty page with room for at least `count` bytes. */
  def take(count: Int): ByteBuffer = spare.lastIndexWhere(_.capacity >= count) match {
    case -1 =>
      val size = math.max(count, pageSize)
      taken += size
      SparePages.take(size).getOrElse(ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN))
    case index => spare.remove(index)
  }

  def giveBack(page: ByteBuffer): Unit =
    if (page.capacity == pageSize) spare += page.clear()
    else {
      taken -= page.capacity
      // A row of this size may not come again, and the garbage collector may not run for a long time.
      DirectMemory.free(page)
    }

  override def close(): Unit = {
    spare.foreach(SparePages.give)
    spare.clear()
  }
}

/** Pages of finished tasks, until the garbage collector takes them. Used memory costs neither page faults nor zeros. */
private object SparePages {
  private val pages = new ConcurrentLinkedDeque[WeakReference[ByteBuffer]]

  def give(page: ByteBuffer): Unit = pages.push(new WeakReference(page))

  /** A page of exactly this size. Pages of other sizes, from other plans, are dropped. */
  @tailrec
  def take(size: Int): Option[ByteBuffer] = {
    val next = pages.poll()
    if (next == null) None
    else {
      val page = next.get
      if (page != null && page.capacity == size) Some(page.clear()) else take(size)
    }
  }
}

private[write] object Pages {
  private val MaxPageSize = 1 << 20
  private val MinPageSize = 4 << 10

  /** The pages of a task that keeps this many payloads. */
  def forTask(payloads: Int, bound: MemoryBound): Pages = {
    val limit = bound.perTask
    new Pages(limit, math.max(MinPageSize, math.min(MaxPageSize, limit / 2 / payloads)).toInt)
  }
}
