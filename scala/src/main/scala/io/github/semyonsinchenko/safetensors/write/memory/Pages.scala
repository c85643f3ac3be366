package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.{ByteBuffer, ByteOrder}
import java.util

import scala.collection.mutable

/**
 * The pages of a task's open shards: little-endian buffers that payloads use again and again. They stay within the limit and
 * within the memory that Spark grants. Exempt are one page per payload and pages for rows larger than a page: without them
 * nothing can be written.
 *
 * @param limit    bytes of all pages together
 * @param pageSize bytes of a page
 */
private[write] final class Pages(memory: PageMemory, limit: Long, val pageSize: Int) extends AutoCloseable {
  import Pages._

  private val spare    = mutable.ArrayBuffer.empty[ByteBuffer]
  private val slabs    = new util.IdentityHashMap[ByteBuffer, Slab]
  private val spillers = mutable.ArrayBuffer.empty[() => Unit]
  private var held     = 0L
  private var granted  = 0L

  memory.onSpill { () =>
    spillers.foreach(_())
    freeSpare()
  }

  /** Registers what moves full pages to disk when another operator of the task needs memory. */
  def onSpill(action: () => Unit): Unit = spillers += action

  /** Makes sure that a page is spare. False if there is no memory for one. */
  def reserve(): Boolean =
    spare.nonEmpty || (held >= SlabBytes && grow(SlabBytes / pageSize)) || grow(1)

  private def grow(pages: Int): Boolean = {
    val size = pages.toLong * pageSize
    held + size <= limit && {
      val part = memory.acquireMemory(size)
      if (part == size) spare ++= allocate(pages, pageSize, part) else memory.freeMemory(part)
      part == size
    }
  }

  /** An empty page with room for at least `count` bytes. */
  def take(count: Int): ByteBuffer =
    if (count <= pageSize && reserve()) spare.remove(spare.size - 1)
    else {
      val size = math.max(count, pageSize)
      allocate(1, size, memory.acquireMemory(size.toLong)).head
    }

  private def allocate(count: Int, size: Int, part: Long): Seq[ByteBuffer] = {
    val slab = new Slab(memory.allocate(count * size), count)
    held += slab.buffer.capacity
    granted += part
    val pages = (0 until count).map(i => slab.buffer.slice(i * size, size).order(ByteOrder.LITTLE_ENDIAN))
    pages.foreach(slabs.put(_, slab))
    pages
  }

  def giveBack(page: ByteBuffer): Unit = {
    spare += page.clear()
    if (page.capacity != pageSize) freeSpare()
  }

  /** Frees the slabs of which all pages are spare. */
  private def freeSpare(): Unit = {
    val unused = spare.groupBy(slabs.get).filter { case (slab, pages) => pages.size == slab.pages }
    spare.filterInPlace(page => !unused.contains(slabs.get(page)))
    unused.foreach { case (slab, pages) =>
      pages.foreach(slabs.remove)
      free(slab)
    }
  }

  private def free(slab: Slab): Unit = {
    held -= slab.buffer.capacity
    memory.free(slab.buffer)
    val excess = math.max(0, granted - held)
    memory.freeMemory(excess)
    granted -= excess
  }

  override def close(): Unit = freeSpare()
}

/** Memory that is cut into pages. */
private final class Slab(val buffer: ByteBuffer, val pages: Int)

private[write] object Pages {
  // A shard of the default size stays in memory.
  private val Limit = 320L << 20

  // All payloads together have about this much in the pages that they fill.
  private val OpenBytes = 64L << 20

  // G1 copies arrays that are smaller than half a region, which costs more than writing them. A region has at most 16 MB in
  // heaps below 64 GB. With its object header, a slab fits into whole regions.
  private val SlabBytes = (16 << 20) - 1024

  private val MaxPageSize = SlabBytes / 16
  private val MinPageSize = 4 << 10

  /** The pages of the current task, which writes this many columns. */
  def forTask(columns: Int): Pages = {
    val pageSize = math.max(MinPageSize, math.min(MaxPageSize, OpenBytes / columns)).toInt
    new Pages(new TaskMemory(CurrentTask.memory()), Limit, pageSize)
  }
}
