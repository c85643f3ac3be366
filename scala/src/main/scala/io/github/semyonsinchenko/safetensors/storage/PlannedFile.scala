package io.github.semyonsinchenko.safetensors.storage

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{AccessDeniedException, NoSuchFileException}

import scala.util.{Failure, Success, Try}

import org.apache.hadoop.fs.{EtagSource, FileStatus, FileSystem, Path}
import org.apache.hadoop.hdfs.BlockMissingException
import org.apache.hadoop.security.AccessControlException

import io.github.semyonsinchenko.safetensors.format.ByteSource

/** A file that a listing or a manifest found. */
trait StoredFile {
  def path: String

  /** In bytes. */
  def length: Long

  /** Whether the file system listed it. If not, its existence and length come from a manifest. */
  def isListed: Boolean

  /** The status from an object store, which identifies this version of the file. None on other file systems. */
  def status: Option[FileStatus]
}

/** A file as it was when the table was loaded. If a read fails, the error describes how the file has changed since. */
private[safetensors] final class PlannedFile(file: StoredFile, fs: FileSystem) {

  def name: String = file.path

  def length: Long = file.length

  /** @throws UnreadableFileException if `body` fails with an IOException */
  def reading[A](body: => A): A =
    try body
    catch { case e: IOException => throw change.getOrElse(unreadable(e)) }

  def unreadable(cause: Throwable): UnreadableFileException = new UnreadableFileException(
    s"$name could not be read: $cause. Check that it is reachable and that you have permission to read it.",
    cause,
    faultOf(cause)
  )

  // Like in Spark's file sources, `ignoreCorruptFiles` does not cover a file that may be valid but cannot be read now.
  private def faultOf(cause: Throwable): FileFault = cause match {
    case _: AccessControlException | _: AccessDeniedException | _: FileNotFoundException |
        _: BlockMissingException => FileFault.Other
    case _ => FileFault.Corrupt
  }

  /** The error for a changed file, or none. It queries the file system, so call it only after a failure. */
  def change: Option[UnreadableFileException] = Try(fs.getFileStatus(new Path(name))) match {
    case Failure(_: FileNotFoundException | _: NoSuchFileException) => Some(gone)
    case Success(now) if now.getLen != length                       => Some(changed(now.getLen))
    case Success(now) if file.status.exists(etag(_) != etag(now))   => Some(replaced)
    case _                                                          => None
  }

  def gone: UnreadableFileException = new UnreadableFileException(
    if (file.isListed) s"$name is gone: it was there when the table was loaded. $Again"
    else s"$name is gone, but the manifest of its dataset names it. $Restore",
    fault = FileFault.Missing
  )

  def changed(now: Long): UnreadableFileException = new UnreadableFileException(
    if (file.isListed)
      s"$name has changed since the table was loaded: it had $length bytes then, and has $now now. $Again"
    else s"$name has $now bytes, but the manifest of its dataset says $length. $Restore",
    fault = FileFault.Corrupt
  )

  private def replaced: UnreadableFileException = new UnreadableFileException(
    s"$name has changed since the table was loaded: it has the same length, but different content. $Again",
    fault = FileFault.Corrupt)

  def tooShort(position: Long, count: Int): UnreadableFileException = new UnreadableFileException(
    s"$name has $length bytes, but bytes $position to ${BigInt(position) + count} were requested. The index " +
      "of its tensors belongs to another file. Write the index again.",
    fault = FileFault.Corrupt
  )

  private def etag(status: FileStatus): Option[String] = status match {
    case source: EtagSource => Option(source.getEtag)
    case _                  => None
  }

  private def Again = "Load the table again."

  private def Restore =
    "If the dataset was overwritten, load the table again. If not, restore the file, or write the dataset again."
}

/** An open file of a query. */
private[safetensors] trait OpenedFile extends ByteSource {

  def file: PlannedFile

  final override def name: String = file.name

  final override def length: Long = file.length

  /** @throws UnreadableFileException for a range outside the file */
  protected final def checkBounds(position: Long, count: Int): Unit =
    if (position < 0 || count < 0 || count > length - position) throw file.tooShort(position, count)
}
