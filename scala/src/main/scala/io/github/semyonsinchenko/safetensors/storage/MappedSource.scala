package io.github.semyonsinchenko.safetensors.storage

import java.io.{File, RandomAccessFile}
import java.nio.MappedByteBuffer
import java.nio.channels.FileChannel

import io.github.semyonsinchenko.safetensors.format.ByteCopy

/**
 * A local file, mapped into memory: bytes go from the page cache to the caller's array in one copy.
 *
 * A map ends at 2 GiB, so that the file is mapped in windows, each when it is first asked for.
 */
private[safetensors] final class MappedSource(path: File, val file: PlannedFile) extends OpenedFile {
  import MappedSource._

  private val handle  = new RandomAccessFile(path, "r")
  private val windows = new Array[MappedByteBuffer](((length + Window - 1) / Window).toInt)

  // A system call before and behind each read would cost more than a small tensor; so many bytes stay in the processor's cache.
  override def batchBytes: Int = 128 << 10

  override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
    checkBounds(position, count)
    checked(copy(position, target, offset, count))
  }

  override def readAll(copies: IndexedSeq[ByteCopy]): Unit = {
    copies.foreach(one => checkBounds(one.position, one.count))
    checked(copies.foreach(one => copy(one.position, one.target, one.offset, one.count)))
  }

  /**
   * What is cut off a mapped file reads as zeros to the end of its page, so that the length is looked at again behind each
   * read. To read on is a fault, which Java 17 reports some time later, where nothing can catch it: hence before each read, too.
   */
  private def checked[A](read: => A): A =
    synchronized { // to touch a window that another thread unmaps ends the process
      file.reading {
        checkLength()
        val result =
          try read
          catch {
            case e: InternalError =>
              checkLength()
              throw file.unreadable(e)
          }
        checkLength()
        result
      }
    }

  private def checkLength(): Unit = {
    val now = handle.length
    if (now != length) throw file.changed(now)
  }

  private def copy(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
    var done = 0
    while (done < count) {
      val index = ((position + done) / Window).toInt
      val from  = ((position + done) % Window).toInt
      val part  = math.min(count - done, Window.toInt - from)
      window(index).get(from, target, offset + done, part)
      done += part
    }
  }

  private def window(index: Int): MappedByteBuffer = {
    if (windows(index) == null) {
      val from = index * Window
      windows(index) =
        handle.getChannel.map(FileChannel.MapMode.READ_ONLY, from, math.min(Window, length - from))
    }
    windows(index)
  }

  override def close(): Unit = synchronized {
    handle.close()
    for (index <- windows.indices if windows(index) != null) {
      unmap(windows(index))
      windows(index) = null
    }
  }
}

private object MappedSource {
  private final val Window = 1L << 30

  // Before Java 22 a map has no public way to be undone ahead of garbage collection, and a long task would keep the
  // address space and disk space of every file that it has read. `sun.misc.Unsafe.invokeCleaner` is the one that the
  // module system leaves open, on all versions that Spark runs on.
  private val unsafe = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[sun.misc.Unsafe]
  }

  private def unmap(window: MappedByteBuffer): Unit = unsafe.invokeCleaner(window)
}
