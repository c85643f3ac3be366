package io.github.semyonsinchenko.safetensors.index

/**
 * Where a tensor lies.
 *
 * @param key   its name in the shard
 * @param file  the shard
 * @param start its first byte in the file
 * @param end   the byte behind its last
 */
final case class IndexEntry(key: String, file: String, shape: Seq[Int], dtype: String, start: Long, end: Long)

/** Entries that come from an open file. */
final class CloseableEntries(entries: Iterator[IndexEntry], whenClosed: () => Unit)
    extends Iterator[IndexEntry]
    with AutoCloseable {
  override def hasNext: Boolean   = entries.hasNext
  override def next(): IndexEntry = entries.next()
  override def close(): Unit      = whenClosed()
}
