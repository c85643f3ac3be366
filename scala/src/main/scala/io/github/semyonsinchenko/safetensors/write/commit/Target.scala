package io.github.semyonsinchenko.safetensors.write.commit

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.github.semyonsinchenko.safetensors.common.{FormatVersion, InvalidRequestException}
import io.github.semyonsinchenko.safetensors.dataset.{
  ColumnKind,
  ColumnRecord,
  DatasetMode,
  InvalidManifestException,
  Manifest
}
import io.github.semyonsinchenko.safetensors.index.TensorIndex
import io.github.semyonsinchenko.safetensors.write.plan.{WriteMode, WriteOptions, WritePlan}
import io.github.semyonsinchenko.safetensors.write.shards.Difference

/** What a write does with the dataset that is already in its directory. */
private[safetensors] sealed trait Existing extends Product with Serializable

private[safetensors] object Existing {

  /** Keeps its shards and adds the new ones after them. */
  case object Keep extends Existing

  /** Replaces its shards, and deletes them after the commit. */
  case object Replace extends Existing

  /** Fails if there is one. */
  case object Refuse extends Existing
}

/**
 * The directory that is written to, after its checks.
 *
 * @param indexed whether it seems that the dataset will have an index, so that tasks prepare its entries. The commit decides.
 * @param buckets how many buckets of keys the shards that stay are in; none if they are not in buckets
 * @param columns the columns of the shards that stay
 */
private[write] final case class Target(
    directory: Path,
    existing: Existing,
    indexed: Boolean,
    buckets: Option[Int],
    columns: Seq[ColumnRecord] = Nil)

private[write] object Target {
  private val log = LoggerFactory.getLogger(classOf[Target])

  /** What is known of a dataset whose manifest is damaged. */
  val Damaged = Manifest("", DatasetMode.Batch, Map.empty, Nil, Nil, parts = None)

  /** @throws InvalidRequestException if this write would mix with what is there, or make it unreadable */
  def of(directory: Path, existing: Existing, plan: WritePlan, conf: Configuration): Target = {
    val kept =
      check(directory, existing, old => plan.appendingTo(old.schema), conf).filter(_ =>
        existing == Existing.Keep)
    val hasIndex = kept.exists(old => TensorIndex.exists(directory, old.indexParts, conf))
    kept.filter(_.shards.nonEmpty).foreach(checkBuckets(_, plan, directory))
    Target(directory, existing, plan.generateIndex || hasIndex, kept.flatMap(_.keyBuckets),
      kept.filter(_.shards.nonEmpty).toSeq.flatMap(_.schema))
  }

  /**
   * The dataset that is there, if this write may go on. Checked when the write is planned, and again under the commit lock, as
   * other writes may have committed since.
   *
   * @param plan what would be appended to the dataset
   * @throws InvalidRequestException if this write would mix with what is there, or make it unreadable
   */
  def check(
      directory: Path,
      existing: Existing,
      plan: Manifest => WritePlan,
      conf: Configuration): Option[Manifest] = {
    checkDirectory(directory, conf)
    val found = old(directory, existing, conf).orElse(
      // Another write may have begun since: it puts its manifest there before its shards.
      list(directory, conf).find(isData).map(file =>
        old(directory, existing, conf).getOrElse(refuse(directory, file))))
    found.foreach(dataset =>
      existing match {
        case Existing.Keep    => checkLike(dataset, plan(dataset), directory)
        case Existing.Refuse  => refuseDataset(directory)
        case Existing.Replace =>
      })
    found
  }

  /**
   * The manifest of the existing dataset. A damaged manifest may be replaced. Its shards stay, because nothing names them.
   *
   * @throws InvalidRequestException if a newer version of safetensors-spark has written the dataset
   */
  private def old(directory: Path, existing: Existing, conf: Configuration): Option[Manifest] =
    try {
      val manifest = Manifest.read(directory, conf)
      manifest.foreach(_.version.checkWritable(new Path(directory, Manifest.FileName),
          FormatVersion.ofManifests))
      manifest
    } catch {
      case e: InvalidManifestException if existing == Existing.Replace =>
        log.warn(s"${e.getMessage} It is overwritten, and its shards are kept.")
        Some(Damaged)
    }

  private def checkDirectory(directory: Path, conf: Configuration): Unit =
    try if (directory.getFileSystem(conf).getFileStatus(directory).isFile) throw new InvalidRequestException(
        s"$directory is a file, and a dataset is a directory. Name another path.")
    catch { case _: FileNotFoundException => }

  private def list(directory: Path, conf: Configuration): Seq[FileStatus] =
    try directory.getFileSystem(conf).listStatus(directory).toSeq
    catch { case _: FileNotFoundException => Nil }

  private def isData(status: FileStatus): Boolean = {
    val name = status.getPath.getName
    !name.startsWith("_") && !name.startsWith(".")
  }

  private def refuseDataset(directory: Path): Nothing = throw new InvalidRequestException(
    s"$directory is a dataset already, and was to be created. Append to it, replace it, or name another path.")

  private def refuse(directory: Path, status: FileStatus): Nothing = throw new InvalidRequestException(
    s"$directory is not a dataset of safetensors, as it has no ${Manifest.FileName}, but it is not empty: it holds " +
      s"${status.getPath.getName}, for one. Name an empty directory, or a dataset.")

  // Not repeated under the commit lock: other buckets make a query slower, not wrong.
  private def checkBuckets(old: Manifest, plan: WritePlan, directory: Path): Unit =
    for (asked <- plan.buckets if !old.keyBuckets.contains(asked)) {
      val there = old.keyBuckets.fold("not in buckets of keys")(count => s"in $count buckets of keys")
      throw new InvalidRequestException(
        s"The shards in $directory are $there, and cannot be appended to with `${WriteOptions.KeyBuckets.name}=$asked`. " +
          "Leave the option out, or overwrite the dataset.")
    }

  /**
   * A dataset without shards takes any.
   *
   * @throws InvalidRequestException if this write cannot be appended to that dataset
   */
  private def checkLike(old: Manifest, plan: WritePlan, directory: Path): Unit = if (old.shards.nonEmpty) {
    def differs(
        what: String,
        there: String,
        here: String,
        remedy: String = "Write to another directory, or overwrite it") = throw new InvalidRequestException(
      s"$directory was written with $what $there, and cannot be appended to with $here. $remedy.")
    if (old.mode != plan.mode.ofDataset) differs("the mode", old.mode.name, plan.mode.ofDataset.name)
    val (there, here) = (old.schema.map(_.name).sorted, plan.columns.map(_.name).sorted)
    if (there != here) differs("the columns", there.mkString(", "), here.mkString(", "))
    for (column <- plan.columns; was <- old.schema.find(_.name == column.name)) {
      if (old.mode == DatasetMode.Batch && isMixed(was)) throw new InvalidRequestException(
        s"The manifest of $directory names no shape that all rows of column `${column.name}` have, as older versions let them differ: " +
          s"nothing can be appended. `safetensors-spark verify $directory` names the shards that differ. Write to another " +
          "directory, or overwrite it.")
      if (was.kind == ColumnKind.Ragged && column.canBeRagged) throw new InvalidRequestException(
        s"Column `${column.name}` of $directory is ragged: another write made it so after this one was planned. Write again.")
      if (was.kind != column.kind) differs(s"column `${column.name}` as", was.kind.name, column.kind.name)
      val planned = column.record(column.dtype, column.shape)
      if (plan.mode.isInstanceOf[WriteMode.Batch] && Difference.between(planned, was))
        differs(
          s"column `${column.name}` as",
          Difference.show(was),
          Difference.show(planned),
          Difference.remedyInDataset(planned, was))
      for (dtype <- planned.dtype; there <- was.dtype if there != dtype)
        differs(s"column `${column.name}` as", there, dtype, Difference.remedyInDataset(planned, was))
    }
  }

  /** Whether rows of a batch dataset differ that may not: older versions did not check that. */
  private def isMixed(column: ColumnRecord): Boolean =
    column.kind == ColumnKind.Fixed && (column.dtype.isEmpty || column.shape.isEmpty)
}
