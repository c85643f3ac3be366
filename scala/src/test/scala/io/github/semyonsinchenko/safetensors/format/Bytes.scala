package io.github.semyonsinchenko.safetensors.format

import java.io.EOFException
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

/** A file in memory, which counts the bytes that are read. */
final class Bytes(content: Array[Byte]) extends ByteSource {
  var bytesRead = 0L

  override def name: String = "a.safetensors"

  override def length: Long = content.length.toLong

  override def read(position: Long, target: Array[Byte], offset: Int, count: Int): Unit = {
    if (position + count > length) throw new EOFException
    System.arraycopy(content, position.toInt, target, offset, count)
    bytesRead += count
  }

  override def close(): Unit = ()
}

object Bytes {

  /** A file with this header, and as many zeros behind it. */
  def file(header: String, data: Int = 0): Array[Byte] = {
    val json = header.getBytes(UTF_8)
    ByteBuffer.allocate(8 + json.length + data).order(ByteOrder.LITTLE_ENDIAN).putLong(
      json.length.toLong).put(json).array
  }
}
