package io.github.semyonsinchenko.safetensors.write.memory

import java.lang.ref.WeakReference
import java.nio.{ByteBuffer, ByteOrder}
import java.util.concurrent.ConcurrentLinkedDeque

import scala.annotation.tailrec
import scala.collection.mutable

/**
 * The memory outside the heap that a task's unfinished shards may take: little-endian pages, used again and again. The
 * limit is kept but for one page that each column must have, and for rows larger than a page. Closed, it leaves them to
 * the JVM's next tasks.
 *
 * @param limit    bytes of all pages together
 * @param pageSize bytes of a page
 */
private[write] final class Pages(limit: Long, val pageSize: Int) extends AutoCloseable {
  private val spare = mutable.ArrayBuffer.empty[ByteBuffer]
  private var taken = 0L

  /** Whether one more page would keep the limit. */
  def hasRoom: Boolean = spare.nonEmpty || taken + pageSize <= limit

  /** An empty page with room for `count` bytes, or more. */
  def take(count: Int): ByteBuffer = spare.lastIndexWhere(_.capacity >= count) match {
    case -1 =>
      val size = math.max(count, pageSize)
      taken += size
      SparePages.take(size).getOrElse(ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN))
    case index => spare.remove(index)
  }

  def giveBack(page: ByteBuffer): Unit =
    if (page.capacity == pageSize) spare += page.clear()
    else taken -= page.capacity // left to the garbage collector: a row of that size may not come again

  override def close(): Unit = {
    spare.foreach(SparePages.give)
    spare.clear()
  }
}

/**
 * The pages of tasks that are done, until the garbage collector takes them: memory that was used before costs neither
 * page faults nor zeros.
 */
private object SparePages {
  private val pages = new ConcurrentLinkedDeque[WeakReference[ByteBuffer]]

  def give(page: ByteBuffer): Unit = pages.push(new WeakReference(page))

  /** One of exactly this size. Those of other sizes, which other plans had, are left to the garbage collector. */
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
  // A shard of the default size stays in memory.
  private val MaxLimit    = 320L << 20
  private val MinLimit    = 16L << 20
  private val MaxPageSize = 1 << 20
  private val MinPageSize = 4 << 10

  /**
   * For a task that writes so many columns. Direct memory is limited to the heap's size unless the user says otherwise, and
   * each of the JVM's tasks takes its share of a quarter of it.
   */
  def forTask(columns: Int, cores: Int): Pages = {
    val limit = math.max(MinLimit, math.min(MaxLimit, Runtime.getRuntime.maxMemory / 4 / cores))
    new Pages(limit, math.max(MinPageSize, math.min(MaxPageSize, limit / 2 / columns)).toInt)
  }
}
