package io.github.semyonsinchenko.safetensors.write.shards

import java.io.OutputStream
import java.nio.ByteBuffer
import java.nio.channels.{Channels, FileChannel, WritableByteChannel}
import java.nio.file
import java.nio.file.{Files, StandardOpenOption}
import java.util.zip.CRC32C

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.storage.{LocalFile, StorageException}

/** A shard file that is being written, with its length and checksum so far. */
private[write] final class ShardFile private (path: Path, channel: WritableByteChannel)
    extends AutoCloseable {
  private val checksum = new CRC32C
  private var written  = 0L

  def length: Long = written

  def crc32c: Int = checksum.getValue.toInt

  def write(bytes: ByteBuffer): Unit = {
    written += bytes.remaining
    checksum.update(bytes.duplicate())
    StorageException.locating(path)(while (bytes.hasRemaining) channel.write(bytes))
  }

  override def close(): Unit = StorageException.locating(path)(channel.close())
}

private[write] object ShardFile {

  /** Creates the file. Local files are written through a channel, which takes direct buffers without a copy to the heap. */
  def create(path: Path, conf: Configuration): ShardFile = StorageException.locating(path) {
    val fs = path.getFileSystem(conf)
    new ShardFile(path,
      LocalFile.of(path, fs).fold(Channels.newChannel(fs.create(path, false): OutputStream))(local))
  }

  private def local(path: file.Path): WritableByteChannel = {
    Files.createDirectories(path.getParent)
    FileChannel.open(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
  }
}
