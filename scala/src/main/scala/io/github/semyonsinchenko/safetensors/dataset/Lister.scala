package io.github.semyonsinchenko.safetensors.dataset

import java.io.{FileNotFoundException, IOException}
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, GlobFilter, Path}

import io.github.semyonsinchenko.safetensors.common.{InvalidRequestException, NoDataException, Parallel}
import io.github.semyonsinchenko.safetensors.storage.{FileNames, LocalFile}

/**
 * A directory to read.
 *
 * @param ofPath    the index of the path of the read under which it was found
 * @param partition the columns and values of the `key=value` directories above it
 * @param above     the directories above it, up to the path
 */
private[dataset] final case class Place(
    ofPath: Int,
    path: Path,
    directory: Directory,
    partition: Vector[(String, String)],
    above: List[Path] = Nil) {

  /** Its files, with these values of the partition columns. */
  def files(values: Vector[Any]): Vector[DataFile] =
    if (values.isEmpty) directory.files else directory.files.map(_.copy(partition = values))
}

/** Finds the directories of the paths of a read, and lists their contents. */
private[dataset] final class Lister(rules: ListingRules, conf: Configuration) {

  private val names = rules.names.map(new GlobFilter(_))

  /** The places of each path, in the order of the paths. Paths are looked up in parallel. */
  def places(paths: Vector[Path]): Vector[Place] = {
    val matched = Parallel.map(paths.zipWithIndex) { case (path, i) => matching(path).map(i -> _) }.flatten
    val roots   = Parallel.map(matched) { case (i, status) => root(i, status) }
    val found   = LazyList.iterate(roots)(below).takeWhile(_.nonEmpty).flatten.toVector.sortBy(_.ofPath)
    val useful  = found.iterator.filter(_.directory.isData).map(_.ofPath).toSet
    if (rules.names.isEmpty) paths.indices.find(!useful(_)).foreach(i => throw nothing(paths(i)))
    else if (useful.isEmpty) throw noneMatches(paths)
    found
  }

  // Tries the literal path first, because a name may contain brackets.
  private def matching(path: Path): Seq[FileStatus] = {
    val fs = path.getFileSystem(conf)
    try Seq(fs.getFileStatus(path))
    catch {
      case _: FileNotFoundException =>
        val matched = glob(path, fs)
        if (matched.isEmpty) throw NoDataException.at(path)
        val data = matched.filter(status =>
          if (status.isFile) DataFile.isData(status) else !FileNames.isHiddenFolder(status.getPath))
        if (data.isEmpty) throw new NoDataException(
          s"$path matches no directory and no name that ends in `${DataFile.Suffix}`, only others such as ${matched.head.getPath}.")
        data
    }
  }

  private def glob(path: Path, fs: FileSystem): Seq[FileStatus] =
    try Option(fs.globStatus(path)).toSeq.flatten
    catch {
      // Hadoop cannot append a name with a colon to a directory. It throws the same exceptions for an invalid pattern.
      case e @ (_: IllegalArgumentException | _: IOException) if isPatterns(e) =>
        throw new InvalidRequestException(
          s"$path cannot be matched with file names: ${e.getMessage}. Name the directory, and set `pathGlobFilter`.",
          Some(e))
    }

  private def isPatterns(e: Throwable) =
    e.isInstanceOf[IllegalArgumentException] || e.getMessage.startsWith("Illegal file pattern")

  private def root(ofPath: Int, status: FileStatus): Place = {
    // A manifest stands for its directory.
    val isManifest = status.isFile && status.getPath.getName == Manifest.FileName
    val path       = if (isManifest) status.getPath.getParent else status.getPath
    if (status.isFile && !isManifest)
      Place(ofPath, path.getParent, named(status), partitionOf(path.getParent))
    else Place(ofPath, path, DatasetFiles.read(path, names, conf, rules.recursive, rules.ignored),
      partitionOf(path))
  }

  private def named(status: FileStatus): Directory =
    if (CheckpointIndex.isOne(status.getPath))
      DatasetFiles.ofCheckpoint(status.getPath, names, conf, rules.ignored)
    else Directory(
      Vector(status).filter(file => names.forall(_.accept(file.getPath))).map(DataFile.of))

  /** Reads the subdirectories of these places that the rules include. */
  private def below(places: Seq[Place]): Seq[Place] =
    Parallel.map(places.flatMap(place => folders(place).map(place -> _))) {
      case (above, (folder, partition)) =>
        Place(above.ofPath, folder, DatasetFiles.read(folder, names, conf, rules.recursive, rules.ignored),
          above.partition ++ partition, above.path :: above.above)
    }

  /** The subdirectories to read, without links to a directory above, which would cause an endless loop. */
  private def folders(place: Place): Seq[(Path, Option[(String, String)])] =
    foldersIn(place).filterNot { case (folder, _) => isLoop(folder, place.path :: place.above) }

  private def isLoop(folder: Path, above: List[Path]): Boolean =
    local(folder).filter(Files.isSymbolicLink(_)).map(_.toRealPath()).exists(target =>
      above.exists(local(_).exists(_.toRealPath() == target)))

  private def local(path: Path) = LocalFile.of(path, path.getFileSystem(conf))

  private def foldersIn(place: Place): Seq[(Path, Option[(String, String)])] =
    if (rules.recursive) place.directory.folders.map(_ -> None)
    else if (place.directory.isListed) Nil
    else {
      val named = place.directory.folders.flatMap(folder =>
        PartitionColumns.parse(folder.getName).map(value => folder -> Some(value)))
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

  private def nothing(path: Path) = new NoDataException(
    s"$path holds no safetensors files: expected names that end in `${DataFile.Suffix}`, or a ${Manifest.FileName}. " +
      "Set `recursiveFileLookup` to look into its directories.")

  private def noneMatches(paths: Seq[Path]) = new NoDataException(
    s"No safetensors file in ${paths.mkString(", ")} has a name that `pathGlobFilter` matches.")
}
