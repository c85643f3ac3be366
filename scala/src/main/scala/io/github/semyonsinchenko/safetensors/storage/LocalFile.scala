package io.github.semyonsinchenko.safetensors.storage

import java.io.File
import java.nio.file

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

/** Files of this machine, which are better reached through `java.nio` than through Hadoop's file system. */
object LocalFile {

  /** Enough to read them by. The file system that Hadoop makes of it is not kept for others, who may have settings. */
  def conf: Configuration = {
    val conf = new Configuration(false)
    conf.setBoolean("fs.file.impl.disable.cache", true)
    conf
  }

  /** None on any other file system, one that wraps the local one included. */
  def of(path: Path, fs: FileSystem): Option[file.Path] = fs match {
    case _: LocalFileSystem | _: RawLocalFileSystem => Some(new File(path.toUri.getPath).toPath)
    case _                                          => None
  }
}
