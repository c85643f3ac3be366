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
 * Files that are replaced as a whole: a reader finds the old one or the new one, never a part or nothing. Azure's ABFS alone
 * cannot: what is written there is empty for a moment.
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
    if (showsWhenClosed(path, fs)) writeTo(path, content, fs)
    else {
      val fresh = new Path(path.getParent, s".${path.getName}.${UUID.randomUUID()}.tmp")
      try {
        writeTo(fresh, content, fs)
        replace(fresh, path, conf)
      } finally { fs.delete(fresh, false); () }
    }
  }

  // Elsewhere a file can be seen while it is written, and is replaced by renaming. In object stores renaming is a copy. ABFS
  // renames over nothing: one would have to delete first, and a dataset without a manifest reads as whatever lies there, which
  // is worse than an empty one, an error.
  private def showsWhenClosed(path: Path, fs: FileSystem): Boolean =
    LocalFile.of(path, fs).isEmpty && !renamesOver(fs)

  /** Puts a file in the place of another, or where none is. In an object store there may be none for a moment. */
  def replace(fresh: Path, place: Path, conf: Configuration): Unit = {
    val fs = place.getFileSystem(conf)
    (LocalFile.of(fresh, fs), LocalFile.of(place, fs)) match {
      case (Some(from), Some(to)) => moveLocal(from, to)
      case _ if renamesOver(fs) =>
        FileContext.getFileContext(place.toUri, conf).rename(fresh, place, Options.Rename.OVERWRITE)
      case _ =>
        fs.delete(place, false)
        if (!fs.rename(fresh, place)) throw new IOException(s"$fresh could not be renamed to $place.")
    }
  }

  private def renamesOver(fs: FileSystem): Boolean =
    Set("hdfs", "viewfs", "webhdfs", "swebhdfs")(fs.getUri.getScheme)

  private def moveLocal(fresh: file.Path, place: file.Path): Unit = {
    Files.move(fresh, place, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    // The sums that Hadoop keeps beside a local file do not move with it, and old ones would make it look damaged.
    Seq(fresh, place).foreach(moved =>
      Files.deleteIfExists(moved.resolveSibling(s".${moved.getFileName}.crc")))
  }

  private def writeTo(path: Path, content: OutputStream => Unit, fs: FileSystem): Unit = {
    val out = fs.create(path, true)
    try content(out)
    catch {
      // Closed, it would put what there is of the text in the place of the old one.
      case e: IOException =>
        if (out.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) out.abort()
        throw e
    }
    out.close()
  }
}
