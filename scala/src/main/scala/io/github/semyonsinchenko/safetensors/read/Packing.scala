package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.dataset.Located
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, Span}

/**
 * Assigns files to partitions, like Spark's built-in sources.
 *
 * @param maxBytes  maximum size of a partition
 * @param openBytes cost of opening a file, as the number of bytes that could be read in that time
 * @param cores     number of cores to keep busy
 */
private[read] final case class Packing(maxBytes: Long, openBytes: Long, cores: Int) {
  import Packing._

  /** Packs consecutive files together. A file larger than the limit gets its own partition. */
  def whole(parts: Seq[FilePart]): Seq[Seq[FilePart]] = packed(parts, limit(parts))

  /** Splits large files, then packs the splits. A partition may contain only some rows of a file. */
  def split(parts: Seq[FilePart]): Seq[Seq[FilePart]] = {
    val most    = limit(parts)
    val headers = if (parts.size >= cores) MinHeaders else MinHeadersOfIdleCores
    packed(parts.flatMap(pieces(_, most, headers)), most)
  }

  private def limit(parts: Seq[FilePart]): Long =
    Seq(1L, math.min(maxBytes, math.max(openBytes, parts.map(_.size + openBytes).sum / cores))).max

  private def packed(parts: Seq[FilePart], most: Long): Seq[Seq[FilePart]] =
    grouped(parts, most, openBytes)(_.size)

  private def pieces(part: FilePart, most: Long, headers: Long): Seq[FilePart] = part.located match {
    case Located.At(tensors) =>
      grouped(tensors, most, 0)(_.size).map(some => part.copy(located = Located.At(some)))
    case Located.Somewhere =>
      val bytes = math.max(most, headers * part.headerBytes)
      Span.split(part.file.length, bytes).map(span => part.copy(span = span))
  }

  /** Groups consecutive items up to `most` bytes. Each item counts as `extra` bytes more than its size. */
  private def grouped[A](items: Seq[A], most: Long, extra: Long)(size: A => Long): Seq[Vector[A]] = {
    val groups = mutable.ArrayBuffer.empty[Vector[A]]
    var bytes  = 0L
    items.foreach { item =>
      if (groups.isEmpty || bytes + size(item) > most) {
        groups += Vector.empty
        bytes = 0
      }
      groups(groups.length - 1) :+= item
      bytes += size(item) + extra
    }
    groups.toSeq
  }
}

private object Packing {

  // The minimum size of a split, in multiples of the header size, because each split reads the header. Reading one
  // header byte takes about as long as reading ten tensor bytes.
  private val MinHeaders = 64L

  // If cores would be idle, smaller splits pay off.
  private val MinHeadersOfIdleCores = 8L
}
