package io.github.semyonsinchenko.safetensors.read.rows

/**
 * The bytes of a file from `begin` to `end`. A task that reads a split returns the rows that start in its span. Spans
 * do not overlap, so each row is returned once, and the driver can plan splits without the header.
 */
private[read] final case class Span(begin: Long, end: Long) {

  def contains(position: Long): Boolean = begin <= position && position < end

  /** The rows that start here, as first (inclusive) and end (exclusive), if `count` equal rows fill `length` bytes. */
  def rows(count: Long, length: Long): (Long, Long) = {
    def firstAt(position: Long) =
      if (position >= length) count else ((BigInt(position) * count + length - 1) / length).toLong
    (firstAt(begin), firstAt(end))
  }
}

private[read] object Span {

  /** A whole file. It has no upper bound because empty tensors may start at the end of the file. */
  val All: Span = Span(0, Long.MaxValue)

  /** Splits `length` bytes into the fewest spans of about equal size, each at most `maxBytes`. */
  def split(length: Long, maxBytes: Long): Iterator[Span] = {
    val count = (math.max(length, 1) - 1) / maxBytes + 1
    val size  = (length + count - 1) / count
    Iterator.range(0L, count).map(i => Span(i * size, if (i < count - 1) (i + 1) * size else All.end))
  }
}
