package io.github.semyonsinchenko.safetensors.read.rows

/**
 * The bytes of a file from `begin` to `end`. A task that reads a split of a file makes the rows that start in its span. The spans
 * of a file do not overlap, so each row is made once, and the driver needs no header to plan them.
 */
private[read] final case class Span(begin: Long, end: Long) {

  def contains(position: Long): Boolean = begin <= position && position < end

  /** The rows that start here, if `count` rows of equal size fill a file of `length` bytes: the first, and the one after the last. */
  def rows(count: Long, length: Long): (Long, Long) = {
    def firstAt(position: Long) =
      if (position >= length) count else ((BigInt(position) * count + length - 1) / length).toLong
    (firstAt(begin), firstAt(end))
  }
}

private[read] object Span {

  /** A whole file. Its end is open, since tensors without bytes may start where the file ends. */
  val All: Span = Span(0, Long.MaxValue)

  /** The fewest spans of about equal size that have at most `maxBytes` of a file of `length` bytes. */
  def split(length: Long, maxBytes: Long): Seq[Span] = {
    val count  = (math.max(length, 1) - 1) / maxBytes + 1
    val begins = (0L until count).map(i => (BigInt(length) * i / count).toLong)
    begins.zip(begins.tail :+ All.end).map { case (begin, end) => Span(begin, end) }
  }
}
