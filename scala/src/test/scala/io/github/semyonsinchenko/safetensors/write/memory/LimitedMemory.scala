package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.ByteBuffer

/** So many bytes of heap memory. */
final class LimitedMemory(limit: Long) extends PageMemory {
  private var action = () => ()
  var used           = 0L

  override def acquireMemory(bytes: Long): Long = {
    val part = math.max(0, math.min(bytes, limit - used))
    used += part
    part
  }

  override def freeMemory(bytes: Long): Unit = used -= bytes

  override def allocate(size: Int): ByteBuffer = ByteBuffer.allocate(size)

  override def free(page: ByteBuffer): Unit = ()

  override def onSpill(action: () => Unit): Unit = this.action = action

  def requestSpill(): Unit = action()
}

object LimitedMemory {
  def pages(limit: Long, pageSize: Int): Pages = new Pages(new LimitedMemory(limit), limit, pageSize)
}
