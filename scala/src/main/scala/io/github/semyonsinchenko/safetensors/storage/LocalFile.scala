package io.github.semyonsinchenko.safetensors.storage

import java.io.{File, IOException}
import java.nio.file
import java.nio.file.Files
import java.nio.file.attribute.BasicFileAttributes

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/** Access to local files through `java.nio` instead of Hadoop's file system. */
object LocalFile {

  /** A minimal configuration to read local files. Caching is off, so that other code does not get this file system. */
  def conf: Configuration = {
    val conf = new Configuration(false)
    conf.setBoolean("fs.file.impl.disable.cache", true)
    conf
  }

  /** The local file. None on other file systems, including those that wrap the local one. */
  def of(path: Path, fs: FileSystem): Option[file.Path] = fs match {
    case _: LocalFileSystem | _: RawLocalFileSystem => Some(new File(path.toUri.getPath).toPath)
    case _                                          => None
  }

  /** @throws UnreadableFileException for a directory, or a named pipe, which would block the reader */
  def checkRegular(path: Path, fs: FileSystem): Unit = of(path, fs).foreach(checkRegular)

  // One look at the file. Two would find a file that another writer deletes between them, such as a lock, to be of another kind.
  def checkRegular(local: file.Path): Unit =
    try if (!Files.readAttributes(local, classOf[BasicFileAttributes]).isRegularFile)
        throw new UnreadableFileException(
          s"$local is not a regular file. Remove it, or read another path.",
          fault = FileFault.Corrupt)
    catch { case _: IOException => } // Opening the file reports it.
}
