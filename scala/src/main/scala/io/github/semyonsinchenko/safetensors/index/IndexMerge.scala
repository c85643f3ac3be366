package io.github.semyonsinchenko.safetensors.index

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.common.DataException
import io.github.semyonsinchenko.safetensors.format.Utf8Order

/** Merges sorted runs as streams: what it takes of the driver's memory does not grow with the keys. */
private[safetensors] final class IndexMerge(runs: Path, conf: Configuration) {

  // A buffer for each; more runs are merged in several rounds.
  private val MaxOpen = 128

  /**
   * All entries in order.
   *
   * @param older the entries of the dataset that is appended to
   */
  def entries(files: Seq[String], older: Option[CloseableEntries]): CloseableEntries =
    if (files.size <= MaxOpen) merged(files.map(IndexRuns.read(runs, _, conf)) ++ older)
    else entries(files.grouped(MaxOpen).map(mergedRun).toSeq, older)

  private def mergedRun(files: Seq[String]): String = {
    val entries = merged(files.map(IndexRuns.read(runs, _, conf)))
    try IndexRuns.write(runs, entries, conf)
    finally entries.close()
  }

  private def merged(sources: Seq[CloseableEntries]): CloseableEntries = {
    val heads =
      mutable.PriorityQueue.empty(Ordering.fromLessThan[Head]((a, b) => Head.order.compare(a, b) > 0))
    def advance(source: CloseableEntries): Unit =
      if (source.hasNext) heads.enqueue(Head(source.next(), source))
    sources.foreach(advance)
    val entries = Iterator.continually(()).takeWhile(_ => heads.nonEmpty).map { _ =>
      val head = heads.dequeue()
      advance(head.source)
      head.entry
    }
    new CloseableEntries(entries, () => sources.foreach(_.close()))
  }
}

private final case class Head(entry: IndexEntry, source: CloseableEntries)

private object Head {
  // Equal keys, as of the shards of a batch-mode dataset, by shard.
  val order: Ordering[Head] = { (a, b) =>
    val keys = Utf8Order.compare(a.entry.key, b.entry.key)
    if (keys != 0) keys else a.entry.file.compareTo(b.entry.file)
  }
}

private[safetensors] object IndexMerge {

  /** @throws DuplicateKeyException when a key comes a second time */
  def unique(entries: Iterator[IndexEntry]): Iterator[IndexEntry] = {
    var last: IndexEntry = null
    entries.map { entry =>
      if (last != null && last.key == entry.key) throw new DuplicateKeyException(
        entry.key,
        s"The key `${entry.key}` stands in two shards, ${last.file} and ${entry.file}, and an index has room for one. Make keys " +
          "unique, or write without `generate_index`. Nothing was changed."
      )
      last = entry
      entry
    }
  }
}

/** A key that occurs twice in a dataset with an index. */
final class DuplicateKeyException(val key: String, message: String)
    extends DataException(message, "SAFETENSORS_DUPLICATE_KEY")
