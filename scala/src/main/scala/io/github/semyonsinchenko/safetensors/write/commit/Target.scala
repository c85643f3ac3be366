package io.github.semyonsinchenko.safetensors.write.commit

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{InvalidManifestException, Manifest}
import io.github.semyonsinchenko.safetensors.index.TensorIndex
import io.github.semyonsinchenko.safetensors.write.plan.WritePlan

/** What becomes of the dataset that is there. */
private[safetensors] sealed trait Existing extends Product with Serializable

private[safetensors] object Existing {

  /** Its shards stay, and the new ones come behind them. */
  case object Keep extends Existing

  /** The new shards take its place, and its own are deleted after the commit. */
  case object Replace extends Existing

  /** There must be none. */
  case object Refuse extends Existing
}

/**
 * The directory that is written to, after its checks.
 *
 * @param indexed whether it has an index after the write
 */
private[write] final case class Target(directory: Path, existing: Existing, indexed: Boolean)

private[write] object Target {
  private val log = LoggerFactory.getLogger(classOf[Target])

  /** @throws InvalidRequestException if this write would mix with what is there, or make it unreadable */
  def of(directory: Path, existing: Existing, plan: WritePlan, conf: Configuration): Target = {
    val present = list(directory, conf)
    old(directory, existing, conf) match {
      case Some(old) if existing == Existing.Keep =>
        checkLike(old, plan, directory)
        Target(directory, existing, plan.generateIndex || TensorIndex.exists(directory, conf))
      case Some(_) if existing == Existing.Refuse => refuseDataset(directory)
      case Some(_)                                => Target(directory, existing, plan.generateIndex)
      case None =>
        present.find(isData).foreach(refuse(directory, _))
        Target(directory, existing, plan.generateIndex)
    }
  }

  /**
   * The manifest of the existing dataset. A damaged manifest may be replaced. Its shards stay, because nothing names them.
   *
   * @throws InvalidRequestException if a newer version of safetensors-spark has written the dataset
   */
  def old(directory: Path, existing: Existing, conf: Configuration): Option[Manifest] =
    try {
      val manifest = Manifest.read(directory, conf)
      manifest.foreach(_.version.checkWritable(new Path(directory, Manifest.FileName)))
      manifest
    } catch {
      case e: InvalidManifestException if existing == Existing.Replace =>
        log.warn(s"${e.getMessage} It is overwritten, and what shards it had are left.")
        Some(Manifest("", "", Map.empty, Nil, Nil))
    }

  private def list(directory: Path, conf: Configuration): Seq[FileStatus] = {
    val fs = directory.getFileSystem(conf)
    try {
      if (fs.getFileStatus(directory).isFile)
        throw new InvalidRequestException(
          s"$directory is a file, and a dataset is a directory. Name another path.")
      fs.listStatus(directory).toSeq
    } catch { case _: FileNotFoundException => Nil }
  }

  private def isData(status: FileStatus): Boolean = {
    val name = status.getPath.getName
    !name.startsWith("_") && !name.startsWith(".")
  }

  def refuseDataset(directory: Path): Nothing = throw new InvalidRequestException(
    s"$directory is a dataset already, and was to be created. Append to it, replace it, or name another path.")

  private def refuse(directory: Path, status: FileStatus): Nothing = throw new InvalidRequestException(
    s"$directory is no dataset of safetensors, as it has no ${Manifest.FileName}, but it is not empty: it holds " +
      s"${status.getPath.getName}, for one. Name an empty directory, or a dataset.")

  /**
   * A dataset without shards takes any.
   *
   * @throws InvalidRequestException if this write cannot be appended to that dataset
   */
  def checkLike(old: Manifest, plan: WritePlan, directory: Path): Unit = if (old.shards.nonEmpty) {
    def differs(what: String, there: String, here: String) = throw new InvalidRequestException(
      s"$directory was written with $what $there, and cannot be appended to with $here. Write to another directory, or overwrite it.")
    if (old.mode != plan.mode.name) differs("the mode", old.mode, plan.mode.name)
    val (there, here) = (old.schema.map(_.name).sorted, plan.columns.map(_.name).sorted)
    if (there != here) differs("the columns", there.mkString(", "), here.mkString(", "))
    for (column <- plan.columns; dtype <- column.dtype;
      was       <- old.schema.find(_.name == column.name).flatMap(_.dtype))
      if (was != dtype.name) differs(s"column `${column.name}` as", was, dtype.name)
  }
}
