package io.github.semyonsinchenko.safetensors.write.memory

import java.io.{File, IOException, InputStream, OutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{Channels, FileChannel, ReadableByteChannel, WritableByteChannel}
import java.nio.file.StandardOpenOption.{CREATE, DELETE_ON_CLOSE, READ, WRITE}

import scala.util.Using

import org.apache.spark.SparkEnv

import io.github.semyonsinchenko.safetensors.storage.StorageException

/**
 * Bytes of an open shard on the local disk. The file is deleted when it is closed, or when the process ends.
 *
 * @param encrypt wraps what is written, or returns it as it is
 * @param decrypt wraps what is read, or returns it as it is
 */
private[write] final class SpillFile(
    file: File,
    encrypt: OutputStream => OutputStream = identity,
    decrypt: InputStream => InputStream = identity)
    extends AutoCloseable {

  private val channel = keeping(FileChannel.open(file.toPath, CREATE, READ, WRITE, DELETE_ON_CLOSE))
  private val plain   = Channels.newOutputStream(channel)
  private val stream  = keeping(encrypt(plain))
  private val target: WritableByteChannel =
    if (stream eq plain) channel else Channels.newChannel(stream)

  def append(bytes: ByteBuffer): Unit = keeping(while (bytes.hasRemaining) target.write(bytes))

  private def keeping[A](body: => A): A =
    try body
    catch {
      case e: IOException => throw new StorageException(
          s"A shard that is not closed yet could not be kept in ${file.getParent}: ${e.getMessage}. Free space there, name " +
            "another disk in `spark.local.dir`, or make shards smaller.",
          e
        )
    }

  /** Passes all bytes to `out`, through one page of `pages`. Nothing can be appended afterwards. */
  def copyTo(out: ByteBuffer => Unit, pages: Pages): Unit = {
    keeping(stream.flush())
    channel.position(0)
    val page = pages.take(pages.pageSize)
    Using.resource(reader())(source => while (source.read(page.clear()) >= 0) out(page.flip()))
    pages.giveBack(page)
  }

  private def reader(): ReadableByteChannel = {
    val bytes     = Channels.newInputStream(channel)
    val decrypted = decrypt(bytes)
    if (decrypted eq bytes) channel else Channels.newChannel(decrypted)
  }

  override def close(): Unit =
    try stream.close()
    finally channel.close()
}

private[write] object SpillFile {

  /** A new file in one of Spark's local directories, encrypted if `spark.io.encryption.enabled` is set. */
  def create(): SpillFile = {
    val env        = SparkEnv.get
    val serializer = env.serializerManager
    new SpillFile(
      env.blockManager.diskBlockManager.createTempLocalBlock()._2,
      out => serializer.wrapForEncryption(out),
      in => serializer.wrapForEncryption(in))
  }
}
