package io.github.semyonsinchenko.safetensors.write.commit

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter

import io.github.semyonsinchenko.safetensors.dataset.Manifest

/**
 * What jobs that died before their commit have left in a dataset's directory: the files of their tasks, and files that were
 * to take another name. A running job has them too, and is recognised by its age: each job writes something within a week.
 */
private[write] object Leftovers {
  private val AgeMillis = 7L * 24 * 3600 * 1000

  private val Id        = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
  private val Temporary = s"_index-$Id|_commit-$Id\\.(alive|takeover)|\\..*\\.$Id(\\.tmp)?".r

  /**
   * Deletes them, if nothing in them is younger than a week, and what the records name that commits of older versions left. Call
   * it under the lock.
   *
   * @param manifest of the directory; the files that it names stay
   */
  def delete(directory: Path, manifest: Manifest, conf: Configuration): Unit = {
    val fs = directory.getFileSystem(conf)
    // By the file system's clock, which tells the times of all files: this commit has just written the manifest.
    lazy val oldest = fs.getFileStatus(new Path(directory, Manifest.FileName)).getModificationTime - AgeMillis

    // Not by a folder's own time: some file systems have none, or always the present.
    def isAged(status: FileStatus): Boolean = {
      val parts = if (status.isDirectory) fs.listStatus(status.getPath).toSeq else Nil
      if (parts.isEmpty) status.getModificationTime < oldest else parts.forall(isAged)
    }

    val cleanup = new Cleanup(directory, conf)
    val files   = fs.listStatus(directory).toSeq
    PendingCommit.recover(directory, files.map(_.getPath), Some(manifest), conf)
    files.flatMap { status =>
      val name = status.getPath.getName
      if (name == FileOutputCommitter.PENDING_DIR_NAME) fs.listStatus(status.getPath).toSeq
      else if (Temporary.matches(name)) Seq(status)
      else Nil
    }.filter(isAged).map(_.getPath).foreach(path => cleanup.attempt(s"delete $path")(fs.delete(path, true)))
  }
}
