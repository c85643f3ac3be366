package io.github.semyonsinchenko.safetensors.write.commit

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.dataset.Manifest
import io.github.semyonsinchenko.safetensors.index.IndexPart
import io.github.semyonsinchenko.safetensors.storage.AtomicFile
import io.github.semyonsinchenko.safetensors.write.shards.ShardNames

/**
 * The shards and parts of the index that a commit may add or delete, on record while it lasts: `_commit-{id}.pending`, a name on each line.
 * By it the next write clears up behind one that died.
 *
 * @param id of the write
 */
private[write] final class PendingCommit(directory: Path, id: UUID, conf: Configuration) {
  private val record = new Path(directory, s"_commit-$id.pending")

  def begin(files: Seq[String]): Unit = AtomicFile.write(record, files.mkString("\n"), conf)

  def end(): Unit = { record.getFileSystem(conf).delete(record, false); () }
}

private[write] object PendingCommit {
  private val FileName = "_commit-[0-9a-f-]{36}\\.pending".r

  /**
   * Deletes what writers that died have left between their shards and their manifest. To be called under the lock: while it
   * is held no other commit lasts.
   *
   * @param manifest of the directory, whose shards stay
   */
  def recover(directory: Path, manifest: Option[Manifest], conf: Configuration): Unit = {
    val fs      = directory.getFileSystem(conf)
    val cleanup = new Cleanup(directory, conf)
    val records = fs.listStatus(directory).map(_.getPath).filter(path => FileName.matches(path.getName))
    records.foreach(record =>
      cleanup.attempt(s"clear up behind ${record.getName}") {
        val names = AtomicFile.read(record, fs).toSeq.flatMap(new String(_, UTF_8).linesIterator)
        if (cleanup.delete(names.filter(name => ShardNames.matches(name) || IndexPart.isName(name)),
            manifest)) fs.delete(record, false)
      })
  }
}
