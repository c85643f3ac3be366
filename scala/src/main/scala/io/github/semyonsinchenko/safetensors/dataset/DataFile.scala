package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.fs.{EtagSource, FileStatus}

import io.github.semyonsinchenko.safetensors.storage.{FileNames, StoredFile}

/**
 * A safetensors file to read.
 *
 * @param directory its directory, with a trailing slash. The files of a directory, up to millions, share this string.
 * @param length    in bytes
 * @param modified  modification time in milliseconds since 1970; none for a shard known only from its manifest
 * @param shard     the facts in the manifest; none for a file without a manifest
 * @param partition values of the partition columns in Spark's internal representation
 * @param status    the status from the object store, which identifies this version; none on other file systems
 * @param tensors   the tensors that the index of a checkpoint assigns to the file; none if all tensors are read
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

  /** Whether a listing treats the file as data. */
  def isData(status: FileStatus): Boolean =
    status.isFile && status.getPath.getName.endsWith(Suffix) && !FileNames.isHidden(status.getPath)
}
