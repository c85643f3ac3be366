package io.github.semyonsinchenko.safetensors.dataset

import java.io.{EOFException, File}
import java.nio.MappedByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption

import io.github.semyonsinchenko.safetensors.format.ByteSource

/**
 * A local file, mapped into memory: bytes go from the page cache to the caller's array in one copy.
 *
 * A map ends at 2 GiB, so that the file is mapped in windows, each when it is first asked for.
 */
private[dataset] final class MappedSource(file: File, val name: String) extends ByteSource {
  import MappedSource._

  private val channel       = FileChannel.open(file.toPath, StandardOpenOption.READ)
  override val length: Long = channel.size
  private val windows       = new Array[MappedByteBuffer](((length + Window - 1) / Window).toInt)

  override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
    if (position + count > length)
      throw new EOFException(s"$name ends at byte $length, before byte ${position + count}")
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
      windows(index) = channel.map(FileChannel.MapMode.READ_ONLY, from, math.min(Window, length - from))
    }
    windows(index)
  }

  override def close(): Unit = {
    windows.foreach(window => if (window != null) unmap(window))
    channel.close()
  }
}

private object MappedSource {
  private val Window = 1L << 30

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
