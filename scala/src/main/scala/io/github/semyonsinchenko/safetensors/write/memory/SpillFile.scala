package io.github.semyonsinchenko.safetensors.write.memory

import java.io.{File, IOException}
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{CREATE, DELETE_ON_CLOSE, READ, WRITE}

import io.github.semyonsinchenko.safetensors.storage.StorageException

/** Bytes on the local disk until their shard is closed. The file is gone when it is closed, however that comes about. */
private[write] final class SpillFile(file: File) extends AutoCloseable {

  private val channel = keeping(FileChannel.open(file.toPath, CREATE, READ, WRITE, DELETE_ON_CLOSE))

  def size: Long = channel.position()

  def append(bytes: ByteBuffer): Unit = keeping(while (bytes.hasRemaining) channel.write(bytes))

  private def keeping[A](body: => A): A =
    try body
    catch {
      case e: IOException => throw new StorageException(
          s"A shard that is not closed yet could not be kept in ${file.getParent}: ${e.getMessage}. Free space there, name " +
            "another disk in `spark.local.dir`, or make shards smaller.",
          e
        )
    }

  /** Through a page of `pages`, so that no other memory is needed. */
  def copyTo(out: ByteBuffer => Unit, pages: Pages): Unit = {
    val page     = pages.take(pages.pageSize)
    var position = 0L
    while (position < size) {
      position += channel.read(page.clear(), position)
      out(page.flip())
    }
    pages.giveBack(page)
  }

  override def close(): Unit = channel.close()
}

private[write] object SpillFile {

  /** A new one in one of Spark's local directories. */
  def create(): SpillFile =
    new SpillFile(org.apache.spark.SparkEnv.get.blockManager.diskBlockManager.createTempLocalBlock()._2)
}
