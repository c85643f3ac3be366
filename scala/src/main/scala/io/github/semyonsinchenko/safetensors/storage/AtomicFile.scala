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
 * Files that are replaced as a whole: a reader finds the old file or the new one, never a part. Azure's ABFS is the exception:
 * a file that is written there is empty for a moment.
 */
object AtomicFile {

  /** The whole file; none where there is none. */
  def read(path: Path, fs: FileSystem): Option[Array[Byte]] = use(path, fs)(_.readAllBytes())

  /** What `body` makes of the file; none where there is none. */
  def use[A](path: Path, fs: FileSystem)(body: InputStream => A): Option[A] =
    try Some(Using.resource(fs.open(path))(body))
    catch { case _: FileNotFoundException => None }

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
   * Writes a file that other writers may replace too.
   *
   * @param draft     where local file systems and HDFS have the file until the last step, which fails if it is gone
   * @param condition of object stores with conditional writes, which do not take the last step if it does not hold
   * @param verify    fails if another writer may have begun to replace the file. It runs before the last step.
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

  // Local files and those of HDFS are visible while they are written, so that a file is replaced by renaming another. In object
  // stores renaming is a copy. ABFS does not rename over a file, and to delete it first is worse than an empty manifest: readers
  // would take a dataset without a manifest for plain files.
  private def showsWhenClosed(path: Path, fs: FileSystem): Boolean =
    LocalFile.of(path, fs).isEmpty && !renamesOver(fs)

  /** Moves a file. Local file systems and HDFS replace a file that is there; other file systems fail then. */
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
    // The checksums that Hadoop keeps beside a local file do not move with it, and those of the old file do not fit.
    Seq(fresh, place).foreach(moved =>
      Files.deleteIfExists(moved.resolveSibling(s".${moved.getFileName}.crc")))
  }

  private def writeTo(out: FSDataOutputStream, content: OutputStream => Unit): Unit = {
    try content(out)
    catch {
      // Closing the stream would replace the old file with a part of the new one.
      case e: IOException =>
        if (out.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) out.abort()
        throw e
    }
    out.close()
  }
}
