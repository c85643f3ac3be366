package io.github.semyonsinchenko.safetensors.storage

import java.io.{File, RandomAccessFile}
import java.nio.MappedByteBuffer
import java.nio.channels.FileChannel

import io.github.semyonsinchenko.safetensors.format.ByteCopy

/**
 * A memory-mapped local file. Bytes are copied once, from the page cache to the caller's array.
 *
 * A mapping is limited to 2 GiB, so the file is mapped in windows on first use.
 */
private[safetensors] final class MappedSource(path: File, val file: PlannedFile) extends OpenedFile {
  import MappedSource._

  LocalFile.checkRegular(path.toPath)

  private val handle  = new RandomAccessFile(path, "r")
  private val windows = new Array[MappedByteBuffer](((length + Window - 1) / Window).toInt)

  // Each read has a system call before and after it, which costs more than reading a small tensor. This many bytes stay
  // in the CPU cache.
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
   * Checks the length before and after a read. If the file is truncated, the rest of its last page reads as zeros. Pages after
   * that fault, and Java 17 reports the fault asynchronously, where it cannot be caught.
   */
  private def checked[A](read: => A): A =
    synchronized { // access to a window that another thread unmaps would crash the process
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
      // Otherwise a long task would hold the address space and the disk space of every file that it has read.
      DirectMemory.free(windows(index))
      windows(index) = null
    }
  }
}

private object MappedSource {
  private final val Window = 1L << 30
}
