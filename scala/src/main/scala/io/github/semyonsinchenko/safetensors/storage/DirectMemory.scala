package io.github.semyonsinchenko.safetensors.storage

import java.nio.ByteBuffer

/**
 * Frees direct and mapped buffers without waiting for garbage collection. Java has no public API for this before 22.
 * The module system allows `sun.misc.Unsafe.invokeCleaner` on all Java versions that Spark supports.
 */
private[safetensors] object DirectMemory {

  private val unsafe = {
    val field = classOf[sun.misc.Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[sun.misc.Unsafe]
  }

  /** Frees a buffer. Nothing may use it afterwards. */
  def free(buffer: ByteBuffer): Unit = unsafe.invokeCleaner(buffer)
}
