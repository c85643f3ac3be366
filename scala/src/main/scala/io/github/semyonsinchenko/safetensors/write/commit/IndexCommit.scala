package io.github.semyonsinchenko.safetensors.write.commit

import java.util.UUID

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Manifest, ShardRecord}
import io.github.semyonsinchenko.safetensors.index.{
  IndexEntry,
  IndexMerge,
  IndexPart,
  IndexReader,
  IndexRuns,
  IndexTiers,
  Keys,
  TensorIndex
}
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, Sources}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WritePlan}

/**
 * The index's part of a commit. It adds a part to the index, into which it merges parts that are not much larger. The part is
 * a new file: the old parts stay until the manifest is replaced. A repeated key stops the commit before that.
 *
 * @param id of the write
 */
private[write] final class IndexCommit(directory: Path, plan: WritePlan, id: UUID, conf: Configuration) {

  /** Where the tasks put their runs; deleted with the write. */
  val runs = new Path(directory, s"_index-$id")

  private val fresh = new Path(directory, s".${IndexPart.OnlyFile}.$id.tmp")

  /**
   * Whether the dataset has an index after this commit. Only the commit lock keeps the answer true: another write may add or
   * remove the index at any time before.
   *
   * @param kept the manifest whose shards stay
   */
  def isDue(kept: Option[Manifest]): Boolean =
    plan.generateIndex || kept.exists(old => TensorIndex.exists(directory, old.indexParts, conf))

  /**
   * Writes what this commit adds. The new shards must be in their places: those without runs are indexed by their headers.
   *
   * @param taken names that the new part must not have
   * @return the parts of the index after this commit
   */
  def prepare(kept: Option[Manifest], written: Seq[ShardsWritten], taken: Seq[String]): Seq[IndexPart] =
    Using.Manager { use =>
      val named     = kept.toSeq.flatMap(_.indexParts)
      val opened    = named.flatMap(TensorIndex.open(directory, _, conf).map(use(_)))
      val current   = if (opened.size == named.size) named.zip(opened) else Nil
      val unindexed = if (current.isEmpty) kept.toSeq.flatMap(_.shards) else Nil
      val files = runsOfHeaders(unindexed ++ written.filter(_.indexRuns.isEmpty).flatMap(_.shards)) ++
        written.flatMap(_.indexRuns)
      if (files.isEmpty && current.nonEmpty) named
      else {
        val added          = (unindexed ++ written.flatMap(_.shards)).map(tensors).sum
        val (stay, merged) = current.splitAt(IndexTiers.kept(opened.map(_.count), added))
        write(use(new IndexMerge(runs, conf).entries(files)), bytesOf(files), stay.map(_._2),
          merged.map(_._2))
        stay.map(_._1) :+ IndexPart(nameOf(stay.isEmpty, taken), id.toString)
      }
    }.get

  // A reader of version 1.0 takes a file of the name `OnlyFile` for the whole index.
  private def nameOf(isWhole: Boolean, taken: Seq[String]): String =
    if (isWhole && !taken.contains(IndexPart.OnlyFile)) IndexPart.OnlyFile else IndexPart.nameOf(id)

  private def write(
      added: Iterator[IndexEntry],
      bytes: Long,
      stay: Seq[IndexReader],
      merged: Seq[IndexReader]): Unit = {
    val checked = if (hasKeys) IndexMerge.absentFrom(stay)(added) else added
    val all     = IndexMerge.merged(checked +: merged.map(_.entries(Keys.all)))
    TensorIndex.write(fresh, id.toString, if (hasKeys) IndexMerge.unique(all) else all,
      bytes + merged.map(_.bytes).sum, conf)
  }

  private def tensors(shard: ShardRecord): Long =
    if (hasKeys) shard.samples * plan.columns.size else plan.columns.map(_.tensors.toLong).sum

  // A run takes about six times as many bytes as its entries in the index.
  private val Compression = 6

  /** About how many bytes the entries of all runs will take. */
  private def bytesOf(files: Seq[String]): Long =
    if (files.isEmpty) 0 else runs.getFileSystem(conf).getContentSummary(runs).getLength / Compression

  /** Runs for shards whose entries nobody has written: their write asked for no index, or its index was lost. */
  private def runsOfHeaders(shards: Seq[ShardRecord]): Seq[String] = {
    val made = new IndexRuns(runs, conf)
    shards.foreach { shard =>
      val file   = DataFile.at(new Path(directory, shard.file).toString, shard.bytes)
      val header = Using.resource(Sources.open(file, conf))(Sources.header)
      made.add(shard.file, header.tensors, header.dataStart)
    }
    made.files
  }

  private def hasKeys: Boolean = plan.mode.isInstanceOf[WriteMode.KeyValue]

  /** Gives the new part its name. Readers ignore it until the manifest names it. */
  def publish(parts: Seq[IndexPart]): Unit =
    parts.find(_.commitId == id.toString).foreach(part =>
      AtomicFile.move(fresh, new Path(directory, part.file), conf))

  def cleanUp(): Unit = {
    delete(fresh)
    delete(runs)
  }

  private def delete(path: Path): Unit = { path.getFileSystem(conf).delete(path, true); () }
}
