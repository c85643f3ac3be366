package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory

/**
 * The state of the manifests, files and indexes under the paths of a read at one moment. A table reads it once and
 * plans all its scans with it. Two snapshots are equal if they have the same files of the same commits.
 *
 * @param files       the files in row order
 * @param partitions  the partition columns; each file has a value for each
 * @param indexed     files in directories with an index of tensors
 * @param directories directories with data, and the manifests of those that are datasets
 * @param others      directories with safetensors files that their manifest or index does not list, and their number
 */
final class Snapshot private[dataset] (
    val files: Vector[DataFile],
    val partitions: StructType,
    val indexed: Vector[IndexedFiles],
    directories: Vector[(Path, Option[Manifest])],
    private[dataset] val others: Vector[(Path, Int)]) {

  def manifests: Vector[Manifest] = directories.flatMap(_._2)

  /** Whether each directory is a dataset. */
  def areDatasets: Boolean = directories.forall(_._2.isDefined)

  private def commits = manifests.map(_.commitId)

  /** The manifest of the dataset in this directory. */
  def manifestOf(directory: Path): Option[Manifest] =
    directories.collectFirst { case (`directory`, Some(manifest)) => manifest }

  /** The directory of a dataset that was written by key. */
  def keyed: Option[Path] =
    directories.collectFirst { case (path, Some(manifest)) if manifest.mode == DatasetMode.KeyValue => path }

  /** Whether the snapshot includes this directory. */
  def covers(directory: Path): Boolean = directories.exists(_._1 == directory)

  /** Logs one warning for all safetensors files that are not data. */
  def warnOfOthers(): Unit = others.headOption.foreach { case (first, _) =>
    val elsewhere = if (others.size > 1) s" and ${others.size - 1} more directories" else ""
    Snapshot.log.warn(
      s"Not read: ${others.map(_._2).sum} safetensors files in $first$elsewhere, which the ${Manifest.FileName} or " +
        "the checkpoint index there does not list.")
  }

  override def equals(other: Any): Boolean = other match {
    case that: Snapshot =>
      (this eq that) || commits == that.commits && partitions == that.partitions && files == that.files
    case _ => false
  }

  override def hashCode: Int = (commits, files.size).hashCode
}

/** The files of a directory and the index of their tensors. */
final case class IndexedFiles(index: DirectoryIndex, files: Vector[DataFile])

object Snapshot {

  /** Nothing to read. */
  val empty = new Snapshot(Vector.empty, new StructType, Vector.empty, Vector.empty, Vector.empty)

  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /**
   * Reads the paths. A path is a file, a directory with its `key=value` subdirectories, or a glob pattern.
   * `DatasetFiles` defines how a directory is read.
   *
   * @param schema the user's schema, which defines the types of the partition columns in it
   * @throws NoDataException if a path has no data; InvalidRequestException in the cases of `DatasetFiles`
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
