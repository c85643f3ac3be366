package io.github.semyonsinchenko.safetensors.storage

import java.nio.ByteBuffer

/**
 * Frees direct and mapped buffers before they are garbage. Before Java 22 there is no public way. The module system allows
 * `sun.misc.Unsafe.invokeCleaner` on all Java versions that Spark supports.
 */
private[safetensors] object DirectMemory {

  private val unsafe = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[sun.misc.Unsafe]
  }

  /** Frees a buffer that nobody uses any more. */
  def free(buffer: ByteBuffer): Unit = unsafe.invokeCleaner(buffer)
}
