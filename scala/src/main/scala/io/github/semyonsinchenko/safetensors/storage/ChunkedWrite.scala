package io.github.semyonsinchenko.safetensors.storage

import java.nio.ByteBuffer
import java.nio.channels.WritableByteChannel

/** Writes large buffers in chunks. For a heap buffer, the JDK allocates and keeps a direct buffer of the same size per thread. */
private[safetensors] object ChunkedWrite {
  private val ChunkBytes = 1 << 20

  def apply(channel: WritableByteChannel, bytes: ByteBuffer): Unit =
    while (bytes.hasRemaining) {
      val size = math.min(bytes.remaining, ChunkBytes)
      val part = channel.write(bytes.slice(bytes.position(), size))
      bytes.position(bytes.position() + part)
    }
}
