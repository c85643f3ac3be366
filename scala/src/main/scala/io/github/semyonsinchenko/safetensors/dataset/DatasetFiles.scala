package io.github.semyonsinchenko.safetensors.dataset

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

/** A safetensors file to read, of `length` bytes. */
final case class DataFile(path: String, length: Long)

/**
 * The files that a path stands for: a named file itself; a directory with a manifest exactly the shards that it names, in
 * its order; another directory its safetensors files, by name.
 */
object DatasetFiles {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  val Suffix = ".safetensors"

  /** @throws InvalidRequestException if nothing is there, or a shard is gone or has another length */
  def of(path: Path, conf: Configuration): Seq[DataFile] = {
    val fs = path.getFileSystem(conf)
    val status =
      try fs.getFileStatus(path)
      catch {
        case _: FileNotFoundException => throw new InvalidRequestException(s"Path does not exist: $path.")
      }
    if (status.isFile) Seq(toDataFile(status))
    else {
      val present = fs.listStatus(status.getPath).filter(isData).toVector
      Manifest.read(status.getPath, conf) match {
        case Some(manifest) => shards(manifest, present, path)
        case None if present.isEmpty =>
          throw new InvalidRequestException(
            s"$path holds no safetensors files: expected names that end in `$Suffix`, or a ${Manifest.FileName}.")
        case None => present.sortBy(_.getPath.getName).map(toDataFile)
      }
    }
  }

  private def shards(manifest: Manifest, present: Vector[FileStatus], directory: Path): Seq[DataFile] = {
    val byName    = present.iterator.map(status => status.getPath.getName -> status).toMap
    val leftovers = present.size - manifest.shards.count(shard => byName.contains(shard.file))
    if (leftovers > 0)
      log.warn(
        s"$directory holds $leftovers safetensors files that its ${Manifest.FileName} does not name; they are not read.")
    manifest.shards.map { shard =>
      val status = byName.getOrElse(shard.file,
        throw new InvalidRequestException(
          s"Shard ${shard.file} is gone from $directory, though its ${Manifest.FileName} names it."))
      if (status.getLen != shard.bytes) throw new InvalidRequestException(
        s"Shard ${shard.file} in $directory has ${status.getLen} bytes, but its ${Manifest.FileName} says ${shard.bytes}.")
      toDataFile(status)
    }
  }

  private def isData(status: FileStatus): Boolean = {
    val name = status.getPath.getName
    status.isFile && name.endsWith(Suffix) && !name.startsWith("_") && !name.startsWith(".")
  }

  private def toDataFile(status: FileStatus): DataFile = DataFile(status.getPath.toString, status.getLen)
}
