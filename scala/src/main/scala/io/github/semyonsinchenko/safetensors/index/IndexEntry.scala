package io.github.semyonsinchenko.safetensors.index

import io.github.semyonsinchenko.safetensors.format.Utf8Order

/**
 * The location of a tensor.
 *
 * @param key   name of the tensor in the shard
 * @param file  file name of the shard
 * @param start offset of its first byte in the file, inclusive
 * @param end   offset of its end in the file, exclusive
 */
final case class IndexEntry(key: String, file: String, shape: Seq[Int], dtype: String, start: Long, end: Long)

object IndexEntry {

  /** By key, then by shard. The shards of a batch-mode dataset have equal keys. */
  val order: Ordering[IndexEntry] = { (a, b) =>
    val keys = Utf8Order.compare(a.key, b.key)
    if (keys != 0) keys else a.file.compareTo(b.file)
  }
}

/** Entries that are read from an open file. */
final class CloseableEntries(entries: Iterator[IndexEntry], whenClosed: () => Unit)
    extends Iterator[IndexEntry]
    with AutoCloseable {
  override def hasNext: Boolean   = entries.hasNext
  override def next(): IndexEntry = entries.next()
  override def close(): Unit      = whenClosed()
}
