package io.github.semyonsinchenko.safetensors.storage

import java.io.{FileNotFoundException, InputStream, IOException, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

/**
 * Replaces files atomically: a reader finds the old file or the new file, never a part. Azure's ABFS is the exception:
 * a file is empty for a moment while it is replaced.
 */
object AtomicFile {

  /** The content of the file. None if it does not exist. */
  def read(path: Path, fs: FileSystem): Option[Array[Byte]] = use(path, fs)(_.readAllBytes())

  /** Applies `body` to the file. None if it does not exist. */
  def use[A](path: Path, fs: FileSystem)(body: InputStream => A): Option[A] =
    try {
      LocalFile.checkRegular(path, fs)
      Some(Using.resource(fs.open(path))(body))
    } catch { case _: FileNotFoundException => None }

  def write(path: Path, text: String, conf: Configuration): Unit =
    write(path, conf)(_.write(text.getBytes(UTF_8)))

  /** @param content writes the file, and may close the stream */
  def write(path: Path, conf: Configuration)(content: OutputStream => Unit): Unit = {
    val fs = path.getFileSystem(conf)
    if (showsWhenClosed(path, fs)) writeTo(fs.create(path, true), content)
    else {
      val draft = new Path(path.getParent, s".${path.getName}.${UUID.randomUUID()}.tmp")
      writeAndMove(path, draft, content, conf)(())
    }
  }

  /**
   * Replaces a file that other writers may replace too.
   *
   * @param draft     temporary file on local file systems and HDFS; the final rename fails if it was deleted
   * @param condition checked by object stores with conditional writes, which reject the write if it does not hold
   * @param verify    fails if another writer may have begun to replace the file. It runs before the final step.
   */
  def replace(path: Path, draft: Path, condition: ConditionalWrite, conf: Configuration)(
      content: OutputStream => Unit)(verify: => Unit): Unit = {
    val fs = path.getFileSystem(conf)
    if (showsWhenClosed(path, fs)) {
      verify
      writeTo(condition.open(path, fs), content)
    } else writeAndMove(path, draft, content, conf)(verify)
  }

  private def writeAndMove(path: Path, draft: Path, content: OutputStream => Unit, conf: Configuration)(
      verify: => Unit): Unit = {
    val fs = path.getFileSystem(conf)
    try {
      writeTo(fs.create(draft, true), content)
      verify
      move(draft, path, conf)
    } finally { fs.delete(draft, false); () }
  }

  // On local file systems and HDFS, files are visible during the write, so a file is replaced by a rename. In object
  // stores a rename is a copy. ABFS does not rename over an existing file. Deleting that file first would be worse than
  // an empty manifest, because readers treat a dataset without a manifest as plain files.
  private def showsWhenClosed(path: Path, fs: FileSystem): Boolean =
    LocalFile.of(path, fs).isEmpty && !renamesOver(fs)

  /** Moves a file. If the target exists, local file systems and HDFS replace it, and other file systems fail. */
  def move(fresh: Path, place: Path, conf: Configuration): Unit = {
    val fs = place.getFileSystem(conf)
    (LocalFile.of(fresh, fs), LocalFile.of(place, fs)) match {
      case (Some(from), Some(to)) => moveLocal(from, to)
      case _ if renamesOver(fs) =>
        FileContext.getFileContext(place.toUri, conf).rename(fresh, place, Options.Rename.OVERWRITE)
      case _ =>
        if (!fs.rename(fresh, place)) throw new IOException(s"$fresh could not be renamed to $place.")
    }
  }

  private def renamesOver(fs: FileSystem): Boolean =
    Set("hdfs", "viewfs", "webhdfs", "swebhdfs")(fs.getUri.getScheme)

  private def moveLocal(fresh: file.Path, place: file.Path): Unit = {
    Files.move(fresh, place, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    // Hadoop's checksum files do not move with the local file, and the checksum file of the old file is wrong.
    Seq(fresh, place).foreach(moved =>
      Files.deleteIfExists(moved.resolveSibling(s".${moved.getFileName}.crc")))
  }

  private def writeTo(out: FSDataOutputStream, content: OutputStream => Unit): Unit = {
    try content(out)
    catch {
      // Closing the stream would replace the old file with a partial new one.
      case e: IOException =>
        if (out.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) out.abort()
        throw e
    }
    out.close()
  }
}
