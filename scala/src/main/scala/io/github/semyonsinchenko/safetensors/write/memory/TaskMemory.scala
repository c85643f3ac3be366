package io.github.semyonsinchenko.safetensors.write.memory

import java.lang.ref.WeakReference
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentLinkedDeque

import scala.annotation.tailrec

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.unsafe.Platform

import io.github.semyonsinchenko.safetensors.storage.DirectMemory

/** Where pages come from. */
private[write] trait PageMemory {

  /** Reserves up to this many bytes, and returns how many it reserved. */
  def acquireMemory(bytes: Long): Long

  def freeMemory(bytes: Long): Unit

  def allocate(size: Int): ByteBuffer

  def free(page: ByteBuffer): Unit

  /** Sets what to do when somebody else needs memory. */
  def onSpill(action: () => Unit): Unit
}

/**
 * Spark's execution memory, shared with the sorts and joins of the same task. It is on the heap, or off the heap with
 * `spark.memory.offHeap.enabled`. Cluster managers count both when they size a container.
 */
private[write] final class TaskMemory(manager: TaskMemoryManager)
    extends MemoryConsumer(manager, manager.getTungstenMemoryMode)
    with PageMemory {

  private val owner    = Thread.currentThread
  private val isDirect = manager.getTungstenMemoryMode == MemoryMode.OFF_HEAP
  private var freeUp   = () => ()

  override def onSpill(action: () => Unit): Unit = freeUp = action

  // Platform's direct buffers do not count against `-XX:MaxDirectMemorySize`.
  override def allocate(size: Int): ByteBuffer =
    if (isDirect) Platform.allocateDirectBuffer(size)
    else SpareBuffers.take(size).getOrElse(ByteBuffer.allocate(size))

  override def free(page: ByteBuffer): Unit =
    if (isDirect) DirectMemory.free(page) else SpareBuffers.give(page)

  // An operator of this task may ask from another thread, such as the one that feeds Python, in the middle of a write.
  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || (Thread.currentThread ne owner)) 0
    else {
      val before = getUsed
      freeUp()
      before - getUsed
    }
}

/**
 * Heap buffers of finished tasks, until the garbage collector takes them. Used memory costs neither page faults nor zeros.
 * Spark keeps its own pages in the same way.
 */
private object SpareBuffers {
  private val buffers = new ConcurrentLinkedDeque[WeakReference[ByteBuffer]]

  def give(buffer: ByteBuffer): Unit = buffers.push(new WeakReference(buffer))

  /** A buffer of exactly this size. Buffers of other sizes are dropped. */
  @tailrec
  def take(size: Int): Option[ByteBuffer] = Option(buffers.poll()) match {
    case None => None
    case Some(next) =>
      val buffer = next.get
      if (buffer != null && buffer.capacity == size) Some(buffer.clear()) else take(size)
  }
}
