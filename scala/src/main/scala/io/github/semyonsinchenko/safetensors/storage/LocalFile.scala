package io.github.semyonsinchenko.safetensors.storage

import java.io.File
import java.nio.file

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/** Local files, which are accessed through `java.nio` instead of Hadoop's file system. */
object LocalFile {

  /** A minimal configuration for reading local files. Caching is off, so that other users do not get this file system. */
  def conf: Configuration = {
    val conf = new Configuration(false)
    conf.setBoolean("fs.file.impl.disable.cache", true)
    conf
  }

  /** None on any other file system, including one that wraps the local one. */
  def of(path: Path, fs: FileSystem): Option[file.Path] = fs match {
    case _: LocalFileSystem | _: RawLocalFileSystem => Some(new File(path.toUri.getPath).toPath)
    case _                                          => None
  }
}
