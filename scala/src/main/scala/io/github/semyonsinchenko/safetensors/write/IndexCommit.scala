package io.github.semyonsinchenko.safetensors.write

import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.{
  AtomicFile,
  InvalidRequestException,
  Manifest,
  TensorIndex
}

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
    if (kept.exists(old => old.shards.nonEmpty && !isIndexed(old))) throw new InvalidRequestException(
      s"${target.directory} lost its index to another write while this one ran. Nothing was changed; write again.")
    val older   = kept.filter(isIndexed).map(_ => TensorIndex.read(target.directory, conf))
    val entries = new IndexMerge(runs, conf).entries(files, older)
    try TensorIndex.write(fresh, id.toString, if (hasKeys) IndexMerge.unique(entries) else entries, conf)
    finally entries.close()
  }

  private def isIndexed(manifest: Manifest): Boolean =
    TensorIndex.commitId(target.directory, conf).contains(manifest.commitId)

  private def hasKeys: Boolean = mode.isInstanceOf[WriteMode.KeyValue]

  /** Puts the new index in its place. Until the manifest follows it is of another commit, and readers do without it. */
  def publish(): Unit = if (target.indexed) AtomicFile.replace(fresh, place, conf)

  /** Deletes an index that the new manifest has none of. */
  def retire(): Unit = if (!target.indexed) delete(place)

  def cleanUp(): Unit = {
    delete(fresh)
    delete(runs)
  }

  private def delete(path: Path): Unit = { path.getFileSystem(conf).delete(path, true); () }
}
