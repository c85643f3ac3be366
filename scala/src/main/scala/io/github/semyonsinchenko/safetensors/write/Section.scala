package io.github.semyonsinchenko.safetensors.write

import java.nio.ByteBuffer

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}

/** A tensor of a shard that is not closed yet; `begin` counts from its section's first byte. */
private[write] final case class Entry(name: String, shape: Seq[Int], begin: Long, end: Long)

/**
 * The tensors of one dtype in a key-value shard, as they come. A shard is its sections from the widest dtype to the
 * narrowest, so that every tensor is aligned though rows are not sorted.
 */
private[write] final class Section(val dtype: Dtype, val payload: Payload) {
  private val entries = mutable.LinkedHashMap.empty[String, Entry]
  private val dead    = mutable.ArrayBuffer.empty[Entry]

  def add(entry: Entry): Unit = entries.put(entry.name, entry)

  /** Takes a tensor out, if it is here. Its bytes stay until [[drain]] leaves them out. */
  def remove(name: String): Unit = entries.remove(name).foreach(dead += _)

  def isEmpty: Boolean = entries.isEmpty

  /** The tensors as they will lie in the byte buffer, from `start` on. */
  def place(start: Long): Seq[TensorInfo] = {
    var begin = start
    entries.values.iterator.map { entry =>
      val tensor = TensorInfo(entry.name, dtype, entry.shape.map(_.toLong).toVector, begin,
        begin + entry.end - entry.begin)
      begin = tensor.end
      tensor
    }.toVector
  }

  /** Hands over the bytes of the tensors that are here, and begins anew. */
  def drain(out: ByteBuffer => Unit): Unit = {
    payload.drain(if (dead.isEmpty) out else new Skip(dead.sortBy(_.begin).toVector, out))
    entries.clear()
    dead.clear()
  }
}

/** Leaves ranges out of what passes; they are in order and do not overlap. */
private final class Skip(ranges: Vector[Entry], out: ByteBuffer => Unit) extends (ByteBuffer => Unit) {
  private var position = 0L
  private var next     = 0

  override def apply(bytes: ByteBuffer): Unit =
    while (bytes.hasRemaining) {
      while (next < ranges.size && ranges(next).end <= position) next += 1
      val inside = next < ranges.size && ranges(next).begin <= position
      val until =
        if (inside) ranges(next).end else if (next < ranges.size) ranges(next).begin else Long.MaxValue
      val count = math.min(bytes.remaining.toLong, until - position).toInt
      if (!inside) out(bytes.slice(bytes.position(), count))
      bytes.position(bytes.position() + count)
      position += count
    }
}
