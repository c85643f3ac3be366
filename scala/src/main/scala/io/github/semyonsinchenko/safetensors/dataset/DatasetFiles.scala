package io.github.semyonsinchenko.safetensors.dataset

import java.io.FileNotFoundException

import scala.annotation.tailrec

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, GlobFilter, Path}
import org.slf4j.LoggerFactory

/**
 * A directory, as it is read.
 *
 * @param files    its data, in order
 * @param folders  the directories in it that may hold data
 * @param manifest of a dataset
 * @param index    what tells in which of its files a tensor is; none where nothing does
 */
private[dataset] final case class Directory(
    files: Vector[DataFile],
    folders: Vector[Path] = Vector.empty,
    manifest: Option[Manifest] = None,
    index: Option[DirectoryIndex] = None) {

  /** Whether it says itself what belongs to it. */
  def isListed: Boolean = manifest.isDefined || index.isDefined
}

/**
 * The files of a directory. With a manifest: exactly the shards that it names, in its order. With the index of a checkpoint:
 * exactly the files that it names. Else its safetensors files, by name.
 */
object DatasetFiles {

  // A writer may replace the manifest between listing and reading it. Each time another commit must get in between.
  private val Attempts = 5

  /** The shards of the dataset in a directory, or its safetensors files. */
  def of(directory: Path, conf: Configuration): Seq[DataFile] = read(directory, None, conf).files

  /**
   * @param names a pattern that the names of files must match
   * @throws InvalidRequestException if the directory or a file is gone that should be there, or a shard has another length
   */
  private[dataset] def read(directory: Path, names: Option[GlobFilter], conf: Configuration): Directory = {
    @tailrec def attempt(left: Int, before: Option[Manifest]): Directory = {
      val present  = new Present(directory, list(directory, conf), names)
      val manifest = if (present.has(Manifest.FileName)) Manifest.read(directory, conf) else None
      // Where the manifest is the one that was read before the listing, what the listing lacks is gone.
      val isCertain = left == 1 || (manifest.isDefined && manifest.map(_.commitId) == before.map(_.commitId))
      val isWhole   = manifest.fold(!present.has(Manifest.FileName))(present.hasShardsOf)
      if (!isWhole && !isCertain) attempt(left - 1, manifest)
      else manifest.fold(withoutManifest(present, conf))(present.shards)
    }
    attempt(Attempts, None)
  }

  /** The files of a checkpoint, of which the index is named. */
  private[dataset] def ofCheckpoint(index: Path, names: Option[GlobFilter], conf: Configuration): Directory =
    new Present(index.getParent, list(index.getParent, conf), names).filesOf(CheckpointIndex.read(index,
      conf))

  private def list(directory: Path, conf: Configuration): Vector[FileStatus] =
    try directory.getFileSystem(conf).listStatus(directory).toVector
    catch { case _: FileNotFoundException => throw absent(directory) }

  private[dataset] def absent(path: Path) = new NoDataException(s"Path does not exist: $path.")

  private def withoutManifest(present: Present, conf: Configuration): Directory =
    present.checkpoint.fold(present.dataFiles)(path => present.filesOf(CheckpointIndex.read(path, conf)))
}

/** What a listing of a directory has found. */
private final class Present(directory: Path, statuses: Vector[FileStatus], names: Option[GlobFilter]) {

  private val byName  = statuses.iterator.map(status => status.getPath.getName -> status).toMap
  private val data    = statuses.filter(DataFile.isData)
  private def folders = statuses.filter(_.isDirectory).map(_.getPath).filterNot(DataFile.isHidden).sorted

  def has(name: String): Boolean = byName.contains(name)

  def hasShardsOf(manifest: Manifest): Boolean =
    manifest.shards.forall(shard => byName.get(shard.file).exists(_.getLen == shard.bytes))

  def dataFiles: Directory =
    Directory(data.filter(matches).sortBy(_.getPath.getName).map(DataFile.of), folders)

  def shards(manifest: Manifest): Directory = {
    warnOfOthers(manifest.shards.map(_.file), Manifest.FileName)
    val files = manifest.shards.map(shard => shard -> file(shard.file, Manifest.FileName))
    files.foreach { case (shard, status) => checkLength(shard, status) }
    val wanted = files.collect {
      case (shard, status) if matches(status) =>
        DataFile.of(status).copy(shard = Some(manifest.factsOf(shard)))
    }
    val index = byName.get(TensorIndex.FileName).map(new DatasetIndex(_, manifest))
    Directory(wanted.toVector, folders, Some(manifest), index)
  }

  private def checkLength(shard: ShardRecord, status: FileStatus): Unit =
    if (status.getLen != shard.bytes) throw new InvalidRequestException(
      s"Shard ${shard.file} in $directory has ${status.getLen} bytes, but its ${Manifest.FileName} says ${shard.bytes}.")

  /** The index of the checkpoint that the directory holds, if it says in a file what belongs to it. */
  def checkpoint: Option[Path] = statuses.map(_.getPath).filter(CheckpointIndex.isOne) match {
    case Seq()    => None
    case Seq(one) => Some(one)
    case several => throw new InvalidRequestException(
        s"$directory holds several checkpoints: ${several.map(_.getName).sorted.mkString(", ")}. Name one of these files as the path.")
  }

  def filesOf(checkpoint: CheckpointIndex): Directory = {
    warnOfOthers(checkpoint.files, checkpoint.name)
    val files = checkpoint.files.map(file(_, checkpoint.name)).filter(matches)
    Directory(files.map(DataFile.of), folders, None, Some(checkpoint.index))
  }

  private def file(name: String, by: String): FileStatus = byName.getOrElse(name,
    throw new InvalidRequestException(s"Shard $name is gone from $directory, though its $by names it."))

  private def matches(status: FileStatus): Boolean = names.forall(_.accept(status.getPath))

  private def warnOfOthers(named: Seq[String], by: String): Unit = {
    val others = data.iterator.map(_.getPath.getName).filterNot(named.toSet).size
    if (others > 0)
      Present.log.warn(
        s"$directory holds $others safetensors files that its $by does not name; they are not read.")
  }
}

private object Present {
  private val log = LoggerFactory.getLogger(classOf[DatasetFiles.type].getName.stripSuffix("$"))
}
