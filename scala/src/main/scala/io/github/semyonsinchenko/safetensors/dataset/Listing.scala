package io.github.semyonsinchenko.safetensors.dataset

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, GlobFilter, Path}
import org.apache.spark.sql.types.StructType

/**
 * What to list below the paths of a read.
 *
 * @param names     a pattern that names of files must match
 * @param recursive whether directories of any name are looked into, and give no partition columns
 * @param base      the directory whose subdirectories name partition columns; each path itself, where there is none
 */
final case class ListingRules(
    names: Option[GlobFilter] = None,
    recursive: Boolean = false,
    base: Option[Path] = None)

/**
 * The files that the paths of a read stand for, in order.
 *
 * @param partitions the partition columns, of which each file has a value
 * @param manifests  of the datasets among the directories
 * @param indexes    what tells where tensors are, by directory
 */
final case class Listing(
    files: Vector[DataFile],
    partitions: StructType,
    manifests: Vector[Manifest],
    indexes: Map[Path, DirectoryIndex])

object Listing {

  /**
   * A named file is read as such; a directory as `DatasetFiles` says, and the directories in it that are named `key=value`;
   * a pattern as what it matches.
   *
   * @param schema that the user gave: it has a say in the types of partition columns
   * @throws NoDataException if a path leads to nothing; InvalidRequestException as `DatasetFiles` says
   */
  def of(paths: Seq[Path], rules: ListingRules, schema: StructType, conf: Configuration): Listing = {
    val found      = paths.flatMap(new Lister(rules, conf).below).toVector
    val filled     = found.filter(_.directory.files.nonEmpty)
    val partitions = PartitionColumns.of(filled.map(_.partition), schema)
    Listing(
      filled.flatMap(place =>
        place.directory.files.map(_.copy(partition = partitions.values(place.partition)))),
      partitions.schema,
      found.flatMap(_.directory.manifest),
      found.flatMap(place => place.directory.index.map(place.path -> _)).toMap
    )
  }
}

/**
 * A directory of a read, and the names of the directories that led to it.
 *
 * @param partition pairs of partition column and value, as texts
 */
private final case class Place(path: Path, directory: Directory, partition: Vector[(String, String)])

private final class Lister(rules: ListingRules, conf: Configuration) {

  def below(path: Path): Seq[Place] = {
    val places = matching(path).flatMap(status =>
      if (status.isFile) Seq(named(status)) else tree(status.getPath))
    // A dataset of no rows has no file, and is none the less there.
    if (places.forall(place => place.directory.files.isEmpty && !place.directory.isListed))
      throw nothing(path)
    places
  }

  private def matching(path: Path): Seq[FileStatus] = {
    val fs = path.getFileSystem(conf)
    try Seq(fs.getFileStatus(path))
    catch {
      case _: FileNotFoundException =>
        val matched = Option(fs.globStatus(path)).toSeq.flatten
          .filter(status =>
            if (status.isFile) DataFile.isData(status) else !DataFile.isHidden(status.getPath))
        if (matched.isEmpty) throw DatasetFiles.absent(path)
        matched
    }
  }

  private def named(status: FileStatus): Place = {
    val path = status.getPath
    val read =
      if (CheckpointIndex.isOne(path)) DatasetFiles.ofCheckpoint(path, rules.names, conf)
      else Directory(Vector(DataFile.of(status)))
    Place(path.getParent, read, partitionOf(path.getParent))
  }

  /** The directory and those below it that the rules lead to, each with its depth's names in order. */
  private def tree(root: Path): Seq[Place] = {
    def levels(paths: Seq[(Path, Vector[(String, String)])]): LazyList[Seq[Place]] =
      if (paths.isEmpty) LazyList.empty
      else {
        val places = Parallel.map(paths) { case (path, partition) =>
          Place(path, DatasetFiles.read(path, rules.names, conf), partition)
        }
        places #:: levels(places.flatMap(next))
      }
    levels(Seq(root -> partitionOf(root))).flatten
  }

  private def next(place: Place): Seq[(Path, Vector[(String, String)])] =
    if (rules.recursive) place.directory.folders.map(_ -> place.partition)
    else if (place.directory.isListed) Nil
    else {
      val named = place.directory.folders.flatMap(folder =>
        PartitionColumns.parse(folder.getName).map(value => folder -> (place.partition :+ value)))
      if (named.nonEmpty && place.directory.files.nonEmpty) throw new InvalidRequestException(
        s"${place.path} holds both safetensors files and directories of partitions such as ${named.head._1.getName}: the files " +
          "would have no value of the partition column. Move them, or set `recursiveFileLookup` to read all without partition columns.")
      named
    }

  private def partitionOf(root: Path): Vector[(String, String)] =
    if (rules.recursive) Vector.empty
    else rules.base.toVector.flatMap { base =>
      val above = Iterator.iterate(root)(_.getParent).takeWhile(path => path != null && path != base).toVector
      if (above.lastOption.exists(_.getParent == base))
        above.reverse.flatMap(path => PartitionColumns.parse(path.getName))
      else if (root == base) Vector.empty
      else throw new InvalidRequestException(s"Option `basePath` is $base, but $root is not below it.")
    }

  private def nothing(path: Path) = new NoDataException(rules.names match {
    case Some(_) => s"No safetensors file in $path has a name that `pathGlobFilter` matches."
    case None =>
      s"$path holds no safetensors files: expected names that end in `${DataFile.Suffix}`, or a ${Manifest.FileName}. " +
        "Set `recursiveFileLookup` to look into its directories."
  })
}
