package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory

/**
 * The state of everything that the paths of a read stand for, at one moment: manifests, files and indexes. A table reads it
 * once and plans all its scans on it. Two snapshots are equal if they hold the same files of the same commits.
 *
 * @param files       in the order of their rows
 * @param partitions  the partition columns; each file has a value of each
 * @param indexed     files whose directory has an index of tensors
 * @param directories those that hold data, with the manifest of each dataset among them
 * @param others      directories with safetensors files that their manifest or index does not name, and how many
 */
final class Snapshot private[dataset] (
    val files: Vector[DataFile],
    val partitions: StructType,
    val indexed: Vector[IndexedFiles],
    directories: Vector[(Path, Option[Manifest])],
    private[dataset] val others: Vector[(Path, Int)]) {

  def manifests: Vector[Manifest] = directories.flatMap(_._2)

  private def commits = manifests.map(_.commitId)

  /** The manifest of the dataset in this directory. */
  def manifestOf(directory: Path): Option[Manifest] =
    directories.collectFirst { case (`directory`, Some(manifest)) => manifest }

  /** Whether files of this directory are part of it. */
  def covers(directory: Path): Boolean = directories.exists(_._1 == directory)

  /** Logs one warning for all safetensors files that are not data. */
  def warnOfOthers(): Unit = others.headOption.foreach { case (first, _) =>
    val elsewhere = if (others.size > 1) s" and ${others.size - 1} more directories" else ""
    Snapshot.log.warn(
      s"Not read: ${others.map(_._2).sum} safetensors files in $first$elsewhere, which the ${Manifest.FileName} or the index of a " +
        "checkpoint there does not name.")
  }

  override def equals(other: Any): Boolean = other match {
    case that: Snapshot =>
      (this eq that) || commits == that.commits && partitions == that.partitions && files == that.files
    case _ => false
  }

  override def hashCode: Int = (commits, files.size).hashCode
}

/** Files of a directory, and the index of their tensors. */
final case class IndexedFiles(index: DirectoryIndex, files: Vector[DataFile])

object Snapshot {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /**
   * Reads what is at the paths. A file is read as such; a directory as `DatasetFiles` says, together with the `key=value`
   * directories in it; a glob pattern as what it matches.
   *
   * @param schema the user's, which decides the types of the partition columns that it names
   * @throws NoDataException if a path leads to nothing; InvalidRequestException as `DatasetFiles` says
   */
  def of(paths: Seq[Path], rules: ListingRules, schema: StructType, conf: Configuration): Snapshot = {
    val found      = new Lister(rules, conf).places(paths.toVector)
    val data       = found.filter(_.directory.isData)
    val partitions = PartitionColumns.of(data.map(_.partition), schema)
    val files      = data.map(place => place.files(partitions.values(place.partition)))
    new Snapshot(
      files.flatten,
      partitions.schema,
      data.zip(files).flatMap { case (place, here) => place.directory.index.map(IndexedFiles(_, here)) },
      data.map(place => place.path -> place.directory.manifest),
      found.collect { case place if place.directory.others > 0 => place.path -> place.directory.others }
    )
  }
}
