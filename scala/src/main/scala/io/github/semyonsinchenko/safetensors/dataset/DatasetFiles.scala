package io.github.semyonsinchenko.safetensors.dataset

import java.io.FileNotFoundException

import scala.annotation.tailrec

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, GlobFilter, Path}

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, NoDataException}
import io.github.semyonsinchenko.safetensors.storage.{FileNames, IgnoredFiles}

/**
 * A directory to read.
 *
 * @param files    its data files, in order
 * @param folders  the subdirectories that may hold data
 * @param manifest the manifest, if it is a dataset
 * @param index    the index that maps tensors to files, if there is one
 * @param others   the number of safetensors files that its manifest or checkpoint index does not list
 */
private[dataset] final case class Directory(
    files: Vector[DataFile],
    folders: Vector[Path] = Vector.empty,
    manifest: Option[Manifest] = None,
    index: Option[DirectoryIndex] = None,
    others: Int = 0) {

  /** Whether a manifest or an index lists its files. */
  def isListed: Boolean = manifest.isDefined || index.isDefined

  /** Whether it can be read. A dataset without rows has no files, but it exists. */
  def isData: Boolean = files.nonEmpty || manifest.exists(_.shards.isEmpty)
}

/**
 * The files of a directory. With a manifest: exactly the shards that it lists, in its order. With a checkpoint index:
 * exactly the files that it lists. Otherwise all its safetensors files, sorted by name.
 */
object DatasetFiles {

  // A writer may replace the manifest between the read and the listing. Each retry needs another such commit.
  private val Attempts = 5

  /** Larger datasets are not listed: a million files take minutes to list, but seconds to read from a manifest. */
  private[safetensors] val MaxListed = 10000

  /** The file that a write holds while it commits. */
  private[safetensors] val CommitLock = "_commit.lock"

  /** The shards of the dataset in a directory, or its safetensors files. */
  def of(directory: Path, conf: Configuration): Seq[DataFile] = read(directory, None, conf).files

  /**
   * Reads a directory. Shards are checked here if the directory is listed, otherwise when they are opened.
   *
   * @param names   a pattern that file names must match
   * @param folders whether to return its subdirectories
   * @param ignored shards to skip instead of failing
   * @throws InvalidRequestException if the directory or a listed file is missing, or a shard has another length
   */
  private[dataset] def read(
      directory: Path,
      names: Option[GlobFilter],
      conf: Configuration,
      folders: Boolean = false,
      ignored: IgnoredFiles = IgnoredFiles.None): Directory = {
    @tailrec def attempt(left: Int, before: Option[Manifest]): Directory =
      Manifest.read(directory, conf) match {
        case Some(manifest) if manifest.shards.size > MaxListed && !folders =>
          unlisted(directory, manifest, names, conf)
        case found =>
          val present = new Present(directory, list(directory, conf), names, ignored)
          found match {
            case None if !present.has(Manifest.FileName) => withoutManifest(present, conf)
            // The manifest has not changed since the previous attempt, so a shard that is not in the listing is
            // missing.
            case Some(same) if before.exists(_.commitId == same.commitId) => present.shards(same)
            case Some(manifest) if present.hasFilesOf(manifest)           => present.shards(manifest)
            case _ if left > 1                                            => attempt(left - 1, found)
            case _ => throw new InvalidRequestException(
                s"The dataset in $directory changes faster than it can be listed. Run the query again.")
          }
      }
    attempt(Attempts, None)
  }

  private def unlisted(
      directory: Path,
      manifest: Manifest,
      names: Option[GlobFilter],
      conf: Configuration): Directory = {
    val parent = s"$directory/".replaceAll("//$", "/")
    val files = manifest.shards.iterator
      .filter(shard => names.forall(_.accept(new Path(directory, shard.file))))
      .map(shard => DataFile(parent, shard.file, shard.bytes, None, Some(manifest.factsOf(shard))))
    Directory(files.toVector, manifest = Some(manifest), index = indexOf(directory, manifest, conf))
  }

  private def indexOf(directory: Path, manifest: Manifest, conf: Configuration): Option[DirectoryIndex] =
    try {
      val fs    = directory.getFileSystem(conf)
      val bytes = manifest.indexParts.map(part => fs.getFileStatus(new Path(directory, part.file)).getLen)
      Option.when(bytes.nonEmpty)(new DatasetIndex(directory, manifest, bytes.sum))
    } catch { case _: FileNotFoundException => None }

  /** The files of a checkpoint whose index is the path of the read. Nothing else in the directory is read. */
  private[dataset] def ofCheckpoint(
      index: Path,
      names: Option[GlobFilter],
      conf: Configuration,
      ignored: IgnoredFiles): Directory =
    new Present(index.getParent, list(index.getParent, conf), names, ignored)
      .filesOf(CheckpointIndex.read(index, conf)).copy(folders = Vector.empty, others = 0)

  private def list(directory: Path, conf: Configuration): Vector[FileStatus] =
    try directory.getFileSystem(conf).listStatus(directory).toVector
    catch { case _: FileNotFoundException => throw NoDataException.at(directory) }

  private def withoutManifest(present: Present, conf: Configuration): Directory =
    present.checkpoint.fold(present.dataFiles)(path => present.filesOf(CheckpointIndex.read(path, conf)))
}

/** The result of listing a directory. */
private final class Present(
    directory: Path,
    statuses: Vector[FileStatus],
    names: Option[GlobFilter],
    ignored: IgnoredFiles) {

  private val files  = statuses.filter(_.isFile)
  private val byName = files.iterator.map(status => status.getPath.getName -> status).toMap
  private val data   = files.filter(DataFile.isData)

  private def folders =
    statuses.filter(_.isDirectory).map(_.getPath).filterNot(FileNames.isHiddenFolder).sorted

  def has(name: String): Boolean = byName.contains(name)

  def hasFilesOf(manifest: Manifest): Boolean =
    manifest.shards.forall(shard => byName.get(shard.file).exists(_.getLen == shard.bytes)) &&
      manifest.parts.forall(_.forall(part => has(part.file)))

  def dataFiles: Directory =
    Directory(data.filter(matches).sortBy(_.getPath.getName).map(DataFile.of), folders)

  def shards(manifest: Manifest): Directory = {
    val files =
      named(manifest.shards.map(_.file), Manifest.FileName, "Restore it, or overwrite the dataset.")
    val present = manifest.shards.filter(shard => byName.contains(shard.file)).zip(files)
    val wanted = present.collect {
      case (shard, status) if hasLength(shard, status) && matches(status) =>
        DataFile.of(status).copy(shard = Some(manifest.factsOf(shard)))
    }
    Directory(wanted.toVector, folders, Some(manifest), indexOf(manifest),
      others(manifest.shards.map(_.file)))
  }

  private def indexOf(manifest: Manifest): Option[DatasetIndex] = {
    val parts = manifest.indexParts
    Option.when(parts.nonEmpty && parts.forall(part => has(part.file)))(
      new DatasetIndex(directory, manifest, parts.map(part => byName(part.file).getLen).sum))
  }

  private def hasLength(shard: ShardRecord, status: FileStatus): Boolean =
    if (status.getLen == shard.bytes) true
    else if (ignored.corrupt) false
    else throw new InvalidRequestException(
      s"Shard ${shard.file} in $directory has ${status.getLen} bytes, but its ${Manifest.FileName} says " +
        s"${shard.bytes}. The file is not the one that was written. Restore it, or overwrite the dataset.")

  /** The checkpoint index in the directory, if there is one. */
  def checkpoint: Option[Path] = {
    val (variants, plain) =
      files.map(_.getPath).filter(CheckpointIndex.isOne).partition(CheckpointIndex.isVariant)
    (if (plain.nonEmpty) plain else variants) match {
      case Seq()    => None
      case Seq(one) => Some(one)
      case several => throw new InvalidRequestException(
          s"$directory holds several checkpoints: ${several.map(_.getName).sorted.mkString(", ")}. Name one of these files as the path.")
    }
  }

  def filesOf(checkpoint: CheckpointIndex): Directory = {
    val files = named(checkpoint.files, checkpoint.name,
      "Add it, or pass the files to read as the paths.")
    Directory(
      files.filter(matches).map { status =>
        DataFile.of(status).copy(tensors = Some(checkpoint.tensorsOf(status.getPath.getName)))
      }.toVector,
      folders,
      None,
      Some(checkpoint),
      others(checkpoint.files)
    )
  }

  private def named(names: Seq[String], by: String, remedy: String): Seq[FileStatus] = {
    val absent = names.filterNot(byName.contains)
    absent.headOption.filterNot(_ => ignored.missing).foreach { first =>
      val more = if (absent.size > 1) s" (and ${absent.size - 1} more)" else ""
      throw new InvalidRequestException(
        s"Shard $first$more is gone from $directory, but its $by names it. $remedy")
    }
    names.flatMap(byName.get)
  }

  private def matches(status: FileStatus): Boolean = names.forall(_.accept(status.getPath))

  // The shards of a commit in progress are not named yet. It holds the lock.
  private def others(named: Seq[String]): Int =
    if (has(DatasetFiles.CommitLock)) 0
    else data.iterator.map(_.getPath.getName).filterNot(named.toSet).size
}
