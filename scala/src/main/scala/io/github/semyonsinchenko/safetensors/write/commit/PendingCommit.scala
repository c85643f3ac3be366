package io.github.semyonsinchenko.safetensors.write.commit

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.github.semyonsinchenko.safetensors.dataset.Manifest
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.AtomicFile
import io.github.semyonsinchenko.safetensors.write.shards.ShardNames

/**
 * The record of the shards and parts of the index that a commit may add or delete: `_pending/{id}`, a name on each line. If the
 * commit dies, the next write cleans up by it. Records have a directory of their own, as that of the dataset may be too large to
 * list.
 *
 * @param id of the write
 */
private[write] final class PendingCommit(directory: Path, id: UUID, conf: Configuration) {
  import PendingCommit._

  private val record = new Path(folder(directory), id.toString)

  /** Where the manifest of this commit may be before it replaces the old one. */
  val draft = new Path(folder(directory), s"$id.manifest")

  def begin(files: Seq[String]): Unit = AtomicFile.write(record, files.mkString("\n"), conf)

  def end(): Unit = {
    record.getFileSystem(conf).delete(record, false)
    deleteIfEmpty(record.getParent, conf)
  }
}

private[write] object PendingCommit {
  // The second is the name that records had in the dataset's own directory.
  private val Record = "[0-9a-f-]{36}|_commit-[0-9a-f-]{36}\\.pending".r

  def isRecord(path: Path): Boolean = Record.matches(path.getName)

  private def folder(directory: Path) = new Path(directory, "_pending")

  /**
   * What other commits have left. Call this and what follows under the lock, when no other commit is under way: all of them died,
   * or have lost the lock.
   */
  def found(directory: Path, conf: Configuration): Seq[Path] =
    list(folder(directory), directory.getFileSystem(conf)).map(_.getPath)

  /**
   * Deletes the manifests and records that they have not put in place, so that a commit that lost the lock cannot do it any
   * more.
   */
  def withdraw(found: Seq[Path], conf: Configuration): Unit =
    found.filterNot(isRecord).foreach(draft => draft.getFileSystem(conf).delete(draft, false))

  /**
   * Deletes their files.
   *
   * @param manifest of the directory; the files that it names stay
   */
  def recover(directory: Path, found: Seq[Path], manifest: Option[Manifest], conf: Configuration): Unit = {
    val fs      = directory.getFileSystem(conf)
    val cleanup = new Cleanup(directory, conf)
    found.filter(isRecord).foreach(record =>
      cleanup.attempt(s"clean up after ${record.getName}") {
        val names = AtomicFile.read(record, fs).toSeq.flatMap(new String(_, UTF_8).linesIterator)
        if (cleanup.delete(names.filter(name => ShardNames.matches(name) || IndexPart.isName(name)),
            manifest)) fs.delete(record, false)
      })
  }

  private def list(folder: Path, fs: FileSystem): Seq[FileStatus] =
    try fs.listStatus(folder).toSeq
    catch { case _: FileNotFoundException => Nil }

  private def deleteIfEmpty(folder: Path, conf: Configuration): Unit = {
    val fs = folder.getFileSystem(conf)
    if (list(folder, fs).isEmpty) fs.delete(folder, false)
    ()
  }
}
