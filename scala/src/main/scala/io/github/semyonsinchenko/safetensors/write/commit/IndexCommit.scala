package io.github.semyonsinchenko.safetensors.write.commit

import java.util.UUID

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Manifest, ShardRecord}
import io.github.semyonsinchenko.safetensors.index.{IndexMerge, IndexRuns, TensorIndex}
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, Sources}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WritePlan}

/**
 * The index's part of a commit: written in full under another name, and put in its place before the manifest. A repeated key
 * stops the commit before that.
 *
 * @param id of the write
 */
private[write] final class IndexCommit(directory: Path, plan: WritePlan, id: UUID, conf: Configuration) {

  /** Where the tasks put their runs; deleted with the write. */
  val runs = new Path(directory, s"_index-$id")

  private val fresh = new Path(directory, s".${TensorIndex.FileName}.$id.tmp")
  private val place = new Path(directory, TensorIndex.FileName)

  /**
   * Whether the dataset has an index after this commit. Only the commit lock keeps the answer true: another write may add or
   * remove the index at any time before.
   *
   * @param kept the manifest whose shards stay
   */
  def isDue(kept: Option[Manifest]): Boolean =
    plan.generateIndex || kept.isDefined && TensorIndex.exists(directory, conf)

  /** Writes the index. The new shards must be in their places: those without runs are indexed by their headers. */
  def prepare(kept: Option[Manifest], written: Seq[ShardsWritten]): Unit = {
    val current = kept.filter(isCurrent)
    val unindexed = kept.filterNot(isCurrent).toSeq.flatMap(_.shards) ++ written.filter(
      _.indexRuns.isEmpty).flatMap(_.shards)
    val added   = runsOfHeaders(unindexed) ++ written.flatMap(_.indexRuns)
    val bytes   = bytesOf(added) + current.fold(0L)(_ => TensorIndex.length(directory, conf))
    val older   = current.map(_ => TensorIndex.read(directory, conf))
    val entries = new IndexMerge(runs, conf).entries(added, older)
    try
      TensorIndex.write(fresh, id.toString, if (hasKeys) IndexMerge.unique(entries) else entries, bytes, conf)
    finally entries.close()
  }

  // A run takes about six times as many bytes as its entries in the index.
  private val Compression = 6

  /** About how many bytes the entries of all runs will take. */
  private def bytesOf(files: Seq[String]): Long =
    if (files.isEmpty) 0 else runs.getFileSystem(conf).getContentSummary(runs).getLength / Compression

  /** Runs for shards whose entries nobody has written: their write asked for no index, or its index was lost. */
  private def runsOfHeaders(shards: Seq[ShardRecord]): Seq[String] = {
    val made = new IndexRuns(runs, conf)
    shards.foreach { shard =>
      val file   = DataFile(new Path(directory, shard.file).toString, shard.bytes)
      val header = Using.resource(Sources.open(file, conf))(Sources.header)
      made.add(shard.file, header.tensors, header.dataStart)
    }
    made.files
  }

  private def isCurrent(manifest: Manifest): Boolean =
    TensorIndex.commitId(directory, conf).contains(manifest.commitId)

  private def hasKeys: Boolean = plan.mode.isInstanceOf[WriteMode.KeyValue]

  /** Puts the new index in its place. Readers ignore it until the manifest names the same commit. */
  def publish(): Unit = AtomicFile.replace(fresh, place, conf)

  /** Deletes the dataset's index. */
  def delete(): Unit = delete(place)

  def cleanUp(): Unit = {
    delete(fresh)
    delete(runs)
  }

  private def delete(path: Path): Unit = { path.getFileSystem(conf).delete(path, true); () }
}
