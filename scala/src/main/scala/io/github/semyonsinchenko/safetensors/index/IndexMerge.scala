package io.github.semyonsinchenko.safetensors.index

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.common.DataException

/** Merges sorted runs as streams, so that its memory use on the driver does not grow with the number of keys. */
private[safetensors] final class IndexMerge(runs: Path, conf: Configuration) {

  // Each open run needs a buffer. More runs are merged in several rounds.
  private val MaxOpen = 128

  /**
   * All entries, sorted.
   *
   * @param files names of the runs
   */
  def entries(files: Seq[String]): CloseableEntries =
    if (files.size <= MaxOpen) open(files)
    else entries(files.grouped(MaxOpen).map(mergedRun).toSeq)

  private def open(files: Seq[String]): CloseableEntries = {
    val opened        = mutable.ArrayBuffer.empty[CloseableEntries]
    def close(): Unit = opened.foreach(_.close())
    try {
      files.foreach(opened += IndexRuns.read(runs, _, conf))
      // `merged` reads the first entry of each run, which may fail.
      new CloseableEntries(IndexMerge.merged(opened.toSeq), () => close())
    } catch { case NonFatal(e) => close(); throw e }
  }

  private def mergedRun(files: Seq[String]): String = {
    val entries = open(files)
    try IndexRuns.write(runs, entries, conf)
    finally entries.close()
  }
}

private final case class Head(entry: IndexEntry, source: Iterator[IndexEntry])

private object Head {
  val order: Ordering[Head] = (a, b) => IndexEntry.order.compare(a.entry, b.entry)
}

private[safetensors] object IndexMerge {

  // The number of keys to look up in other parts at once.
  private val Chunk = 10000

  /** Merges sorted sources. */
  def merged(sources: Seq[Iterator[IndexEntry]]): Iterator[IndexEntry] = {
    val heads =
      mutable.PriorityQueue.empty(Ordering.fromLessThan[Head]((a, b) => Head.order.compare(a, b) > 0))
    def advance(source: Iterator[IndexEntry]): Unit =
      if (source.hasNext) heads.enqueue(Head(source.next(), source))
    sources.foreach(advance)
    Iterator.continually(()).takeWhile(_ => heads.nonEmpty).map { _ =>
      val head = heads.dequeue()
      advance(head.source)
      head.entry
    }
  }

  /** @throws DuplicateKeyException if a key occurs twice */
  def unique(entries: Iterator[IndexEntry]): Iterator[IndexEntry] = {
    var last: IndexEntry = null
    entries.map { entry =>
      if (last != null && last.key == entry.key) throw duplicate(last, entry)
      last = entry
      entry
    }
  }

  /** @throws DuplicateKeyException if one of the parts already has a key */
  def absentFrom(parts: Seq[IndexReader])(entries: Iterator[IndexEntry]): Iterator[IndexEntry] =
    if (parts.isEmpty) entries
    else entries.grouped(Chunk).flatMap { chunk =>
      val keys = Keys.of(chunk.iterator.map(entry => UTF8String.fromString(entry.key)))
      for (part <- parts; older <- part.entries(keys).nextOption(); entry <- chunk.find(_.key == older.key))
        throw duplicate(older, entry)
      chunk
    }

  private def duplicate(one: IndexEntry, other: IndexEntry) = new DuplicateKeyException(
    other.key,
    s"The key `${other.key}` is in two shards, ${one.file} and ${other.file}, but an index takes each key once. Make keys " +
      "unique, or write without `generate_index`. Nothing was changed."
  )
}

/** A key that occurs twice in a dataset with an index. */
final class DuplicateKeyException(val key: String, message: String)
    extends DataException(message, "SAFETENSORS_DUPLICATE_KEY")
