package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.{EtagSource, FileStatus}

import io.github.semyonsinchenko.safetensors.storage.{FileNames, StoredFile}

/**
 * A safetensors file to read.
 *
 * @param directory its directory, with a slash at the end. Files of a directory share this string: there may be a million.
 * @param length    in bytes
 * @param modified  when, in milliseconds since 1970; none for a shard that is known from its manifest alone
 * @param shard     what a manifest says of it; none for a file that no manifest names
 * @param partition values of the partition columns, as Spark keeps them
 * @param status    what its object store said of it, by which that knows it again; none on other file systems
 * @param tensors   names of those that count, as the index of a checkpoint has it; none where all do
 */
final case class DataFile(
    directory: String,
    name: String,
    length: Long,
    modified: Option[Long] = Some(0),
    shard: Option[ShardFacts] = None,
    partition: Vector[Any] = Vector.empty,
    status: Option[FileStatus] = None,
    tensors: Option[Set[String]] = None) extends StoredFile {

  override def isListed: Boolean = modified.isDefined

  override def path: String = directory + name
}

object DataFile {
  val Suffix = ".safetensors"

  def at(path: String, length: Long): DataFile = {
    val begin = path.lastIndexOf('/') + 1
    DataFile(path.substring(0, begin), path.substring(begin), length)
  }

  def of(status: FileStatus): DataFile = at(status.getPath.toString, status.getLen).copy(
    modified = Some(status.getModificationTime),
    status = Some(status).filter(_.isInstanceOf[EtagSource]))

  /** Whether a listing takes the file for data. */
  def isData(status: FileStatus): Boolean =
    status.isFile && status.getPath.getName.endsWith(Suffix) && !FileNames.isHidden(status.getPath)
}
