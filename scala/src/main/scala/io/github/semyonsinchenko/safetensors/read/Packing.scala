package io.github.semyonsinchenko.safetensors.read

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
  def whole(parts: Seq[FilePart]): Iterator[Seq[FilePart]] = packed(parts.iterator, limit(parts))

  /** Splits large files, then packs the splits. A partition may contain only some rows of a file. */
  def split(parts: Seq[FilePart]): Iterator[Seq[FilePart]] = {
    val most    = limit(parts)
    val headers = if (parts.size >= cores) MinHeaders else MinHeadersOfIdleCores
    packed(parts.iterator.flatMap(pieces(_, most, headers)), most)
  }

  private def limit(parts: Seq[FilePart]): Long =
    Seq(1L, math.min(maxBytes, math.max(openBytes, parts.iterator.map(_.size + openBytes).sum / cores))).max

  private def packed(parts: Iterator[FilePart], most: Long): Iterator[Seq[FilePart]] =
    grouped(parts, most, openBytes)(_.size)

  private def pieces(part: FilePart, most: Long, headers: Long): Iterator[FilePart] = part.located match {
    case Located.At(tensors) =>
      grouped(tensors.iterator, most, 0)(_.size).map(some => part.copy(located = Located.At(some.toVector)))
    case Located.Somewhere =>
      val bytes = math.max(most, headers * part.headerBytes)
      Span.split(part.file.length, bytes).map(span => part.copy(span = span))
  }

  /** Groups consecutive items up to `most` bytes. Each item counts as `extra` bytes more than its size. */
  private def grouped[A](items: Iterator[A], most: Long, extra: Long)(size: A => Long): Iterator[List[A]] =
    Iterator.unfold(items.buffered)(rest => Option.when(rest.hasNext)(group(rest, most, extra)(size) -> rest))

  // A list, because there may be millions of groups of one item.
  private def group[A](
      rest: collection.BufferedIterator[A],
      most: Long,
      extra: Long)(size: A => Long): List[A] = {
    val group = List.newBuilder[A]
    var bytes = 0L
    do {
      bytes += size(rest.head) + extra
      group += rest.next()
    } while (rest.hasNext && bytes + size(rest.head) <= most)
    group.result()
  }
}

private object Packing {

  // The minimum size of a split, in multiples of the header size, because each split reads the header. Reading one
  // header byte takes about as long as reading ten tensor bytes.
  private val MinHeaders = 64L

  // If cores would be idle, smaller splits pay off.
  private val MinHeadersOfIdleCores = 8L
}
