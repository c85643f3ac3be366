package io.github.semyonsinchenko.safetensors.storage

import java.io.File
import java.nio.file

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
}
