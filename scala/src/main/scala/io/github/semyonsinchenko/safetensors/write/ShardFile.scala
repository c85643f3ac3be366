package io.github.semyonsinchenko.safetensors.write

import java.io.{File, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{Channels, FileChannel, WritableByteChannel}
import java.nio.file.{Files, StandardOpenOption}
import java.util.zip.CRC32C

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}

/** A shard's file while it is written; knows its length and its checksum. */
private[write] final class ShardFile private (channel: WritableByteChannel) extends AutoCloseable {
  private val checksum = new CRC32C
  private var written  = 0L

  def length: Long = written

  def crc32c: Int = checksum.getValue.toInt

  def write(bytes: ByteBuffer): Unit = {
    written += bytes.remaining
    checksum.update(bytes.duplicate())
    while (bytes.hasRemaining) channel.write(bytes)
  }

  override def close(): Unit = channel.close()
}

private[write] object ShardFile {

  /** A new file at `path`; local ones are written by a channel, which takes the bytes from outside the heap as they are. */
  def create(path: Path, conf: Configuration): ShardFile = path.getFileSystem(conf) match {
    case _: LocalFileSystem | _: RawLocalFileSystem => new ShardFile(local(new File(path.toUri.getPath)))
    case fs => new ShardFile(Channels.newChannel(fs.create(path, false): OutputStream))
  }

  private def local(file: File): FileChannel = {
    Files.createDirectories(file.getParentFile.toPath)
    FileChannel.open(file.toPath, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
  }
}
