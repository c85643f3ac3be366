package io.github.semyonsinchenko.safetensors.write.shards

import java.nio.ByteBuffer

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.write.memory.Payload

/** A tensor of an open shard. `begin` and `end` are relative to its section. */
private[write] final class Entry(
    val name: String,
    val column: String,
    val shape: Seq[Int],
    val begin: Long,
    val end: Long) {

  /** Whether a later tensor of the same name replaced it. */
  var replaced = false
}

/**
 * The tensors of one dtype in a key-value shard, in row order. A shard stores its sections from the widest dtype to the
 * narrowest, which aligns every tensor without sorting the rows.
 */
private[write] final class Section(val dtype: Dtype, val payload: Payload) {
  private val entries = mutable.ArrayBuffer.empty[Entry]

  def add(entry: Entry): Unit = entries += entry

  def isEmpty: Boolean = entries.forall(_.replaced)

  /** The tensors with their offsets in the byte buffer; the section begins at `start`. */
  def place(start: Long): Seq[TensorInfo] = {
    var begin = start
    // Most tensors share one shape object.
    var (shape, dims) = (Seq.empty[Int], Vector.empty[Long])
    entries.iterator.filterNot(_.replaced).map { entry =>
      if (entry.shape ne shape) {
        shape = entry.shape
        dims = shape.map(_.toLong).toVector
      }
      val tensor = TensorInfo(entry.name, dtype, dims, begin, begin + entry.end - entry.begin)
      begin = tensor.end
      tensor
    }.toVector
  }

  /** Passes the bytes of the tensors that were not replaced to `out`, and clears the section. */
  def drain(out: ByteBuffer => Unit): Unit = {
    val replaced = entries.iterator.filter(_.replaced).toVector
    payload.drain(if (replaced.isEmpty) out else new Skip(replaced, out))
    entries.clear()
  }
}

/** Drops ranges from a stream of bytes. The ranges are sorted and do not overlap. */
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
