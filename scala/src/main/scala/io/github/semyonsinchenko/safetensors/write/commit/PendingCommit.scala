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
 * The shards and parts of the index that a commit may add or delete, on record while it lasts: `_pending/{id}`, a name on each
 * line. The next write finds it if this one dies. Records have a directory of their own, as that of the dataset may be too large
 * to list.
 *
 * @param id of the write
 */
private[write] final class PendingCommit(directory: Path, id: UUID, conf: Configuration) {
  import PendingCommit._

  private val record = new Path(folder(directory), id.toString)

  def begin(files: Seq[String]): Unit = AtomicFile.write(record, files.mkString("\n"), conf)

  def end(): Unit = {
    record.getFileSystem(conf).delete(record, false)
    deleteIfEmpty(record.getParent, conf)
  }
}

private[write] object PendingCommit {
  private val Id = "[0-9a-f-]{36}".r

  private def folder(directory: Path) = new Path(directory, "_pending")

  /**
   * Deletes the shards that writers have left that died between their shards and their manifest. Call it under the lock, when
   * no other commit is under way.
   *
   * @param manifest of the directory, whose shards stay
   */
  def recover(directory: Path, manifest: Option[Manifest], conf: Configuration): Unit = {
    val fs      = directory.getFileSystem(conf)
    val cleanup = new Cleanup(directory, conf)
    val records = list(folder(directory), fs).map(_.getPath).filter(path => Id.matches(path.getName))
    records.foreach(record =>
      cleanup.attempt(s"clear up behind ${record.getName}") {
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
