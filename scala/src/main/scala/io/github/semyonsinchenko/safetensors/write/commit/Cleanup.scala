package io.github.semyonsinchenko.safetensors.write.commit

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.dataset.Manifest

/** Steps after a write has failed or succeeded: their own failure must not hide that. */
private[write] final class Cleanup(directory: Path, conf: Configuration) {
  private val log = LoggerFactory.getLogger(getClass)

  private def fs: FileSystem = directory.getFileSystem(conf)

  /** Whether the step succeeded. */
  def attempt(what: String)(step: => Any): Boolean =
    try { step; true }
    catch { case NonFatal(e) => log.warn(s"Could not $what in $directory.", e); false }

  /** Deletes those of the files that the manifest does not name. Returns whether they are gone. */
  def delete(files: Seq[String], manifest: Option[Manifest]): Boolean = {
    val candidates = files.toSet
    val named      = manifest.iterator.flatMap(_.files).filter(candidates).toSet
    files.filterNot(named).map(file =>
      attempt(s"delete $file")(fs.delete(new Path(directory, file), false))).forall(identity)
  }
}
