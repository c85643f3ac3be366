package io.github.semyonsinchenko.safetensors.index

import io.github.semyonsinchenko.safetensors.format.Utf8Order

/**
 * Where a tensor lies.
 *
 * @param key   its name in the shard
 * @param file  the shard
 * @param start its first byte in the file
 * @param end   the byte behind its last
 */
final case class IndexEntry(key: String, file: String, shape: Seq[Int], dtype: String, start: Long, end: Long)

object IndexEntry {

  /** By key; entries of equal keys, as of the shards of a batch-mode dataset, by shard. */
  val order: Ordering[IndexEntry] = { (a, b) =>
    val keys = Utf8Order.compare(a.key, b.key)
    if (keys != 0) keys else a.file.compareTo(b.file)
  }
}

/** Entries that come from an open file. */
final class CloseableEntries(entries: Iterator[IndexEntry], whenClosed: () => Unit)
    extends Iterator[IndexEntry]
    with AutoCloseable {
  override def hasNext: Boolean   = entries.hasNext
  override def next(): IndexEntry = entries.next()
  override def close(): Unit      = whenClosed()
}
