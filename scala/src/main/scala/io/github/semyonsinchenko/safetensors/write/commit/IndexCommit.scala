package io.github.semyonsinchenko.safetensors.write.commit

import java.util.UUID

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.{DatasetFiles, Manifest}
import io.github.semyonsinchenko.safetensors.index.{IndexMerge, IndexRuns, TensorIndex}
import io.github.semyonsinchenko.safetensors.storage.{AtomicFile, Sources}
import io.github.semyonsinchenko.safetensors.write.plan.WriteMode

/**
 * The index's part of a commit. It is made in full, under another name, before anything of the write is visible: a key that
 * comes twice stops it there.
 *
 * @param id of the write
 */
private[write] final class IndexCommit(target: Target, mode: WriteMode, id: UUID, conf: Configuration) {

  /** Where the tasks put their runs; gone with the write. */
  val runs = new Path(target.directory, s"_index-$id")

  private val fresh = new Path(target.directory, s".${TensorIndex.FileName}.$id.tmp")
  private val place = new Path(target.directory, TensorIndex.FileName)

  /** @param kept the manifest whose shards stay */
  def prepare(kept: Option[Manifest], files: Seq[String]): Unit = if (target.indexed) {
    val current   = kept.filter(isIndexed)
    val unindexed = if (kept.isDefined && current.isEmpty) runsOfHeaders() else Nil
    val added     = unindexed ++ files
    val bytes     = bytesOf(added) + current.fold(0L)(_ => TensorIndex.length(target.directory, conf))
    val older     = current.map(_ => TensorIndex.read(target.directory, conf))
    val entries   = new IndexMerge(runs, conf).entries(added, older)
    try
      TensorIndex.write(fresh, id.toString, if (hasKeys) IndexMerge.unique(entries) else entries, bytes, conf)
    finally entries.close()
  }

  // Of so many bytes of a run about one is left in the index.
  private val Compression = 6

  /** About how many bytes the entries of all runs will take. */
  private def bytesOf(files: Seq[String]): Long =
    if (files.isEmpty) 0 else runs.getFileSystem(conf).getContentSummary(runs).getLength / Compression

  /** The entries of the shards that stay, which no index knows: it was not asked for, or its write died. */
  private def runsOfHeaders(): Seq[String] = {
    val made = new IndexRuns(runs, conf)
    DatasetFiles.of(target.directory, conf).foreach { shard =>
      val header = Using.resource(Sources.open(shard, conf))(Sources.header)
      made.add(new Path(shard.path).getName, header.tensors, header.dataStart)
    }
    made.files
  }

  private def isIndexed(manifest: Manifest): Boolean =
    TensorIndex.commitId(target.directory, conf).contains(manifest.commitId)

  private def hasKeys: Boolean = mode.isInstanceOf[WriteMode.KeyValue]

  /** Puts the new index in its place. Until the manifest follows it is of another commit, and readers do without it. */
  def publish(): Unit = if (target.indexed) AtomicFile.replace(fresh, place, conf)

  /** Takes back what was published into a directory without a dataset. */
  def withdraw(): Unit = delete(place)

  /** Deletes an index that the new manifest has none of. */
  def retire(): Unit = if (!target.indexed) delete(place)

  def cleanUp(): Unit = {
    delete(fresh)
    delete(runs)
  }

  private def delete(path: Path): Unit = { path.getFileSystem(conf).delete(path, true); () }
}
