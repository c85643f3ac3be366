package io.github.semyonsinchenko.safetensors.read

import scala.collection.mutable

import io.github.semyonsinchenko.safetensors.dataset.Located
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, Span}

/**
 * Shares files out to partitions, as Spark's own sources do.
 *
 * @param maxBytes  of a partition
 * @param openBytes how many bytes could be read while a file is opened
 * @param cores     for which there should be work
 */
private[read] final case class Packing(maxBytes: Long, openBytes: Long, cores: Int) {
  import Packing._

  /** Packs consecutive files together. A larger file has a partition of its own. */
  def whole(parts: Seq[FilePart]): Seq[Seq[FilePart]] = packed(parts, limit(parts))

  /** Splits large files first, so that the rows of a partition may be a part of a file's. */
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

  /** Consecutive items, together while they have at most `most` bytes. Each item counts as `extra` bytes more. */
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

  // A split is at least this many times as large as the header, which each split reads. A byte of the header takes about as
  // long as ten bytes of tensors.
  private val MinHeaders = 64L

  // Where cores would have nothing to do, a split pays sooner.
  private val MinHeadersOfIdleCores = 8L
}
