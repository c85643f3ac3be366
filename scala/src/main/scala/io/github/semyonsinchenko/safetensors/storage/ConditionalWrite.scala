package io.github.semyonsinchenko.safetensors.storage

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{EtagSource, FileSystem, FSDataOutputStream, Path}

/** What must be in a place when a file is written there. Only stores with conditional writes check it: S3A since Hadoop 3.4.2. */
sealed trait ConditionalWrite extends Product with Serializable {

  /** A stream whose bytes take the place when it is closed, and only if the condition holds then. */
  def open(path: Path, fs: FileSystem): FSDataOutputStream
}

object ConditionalWrite {

  // Hadoop's names for the options of `createFile`, and for the file systems' capabilities.
  private[storage] val IfAbsent = "fs.option.create.conditional.overwrite"
  private val IfEtag            = "fs.option.create.conditional.overwrite.etag"

  /** The file system cannot check anything. */
  private case object Always extends ConditionalWrite {
    override def open(path: Path, fs: FileSystem): FSDataOutputStream = fs.create(path, true)
  }

  private case object Absent extends ConditionalWrite {
    override def open(path: Path, fs: FileSystem): FSDataOutputStream =
      fs.createFile(path).recursive().must(IfAbsent, true).build()
  }

  private final case class Unchanged(etag: String) extends ConditionalWrite {
    override def open(path: Path, fs: FileSystem): FSDataOutputStream =
      fs.createFile(path).recursive().overwrite(true).must(IfEtag, etag).build()
  }

  /** That nothing changes from now on. */
  def ifUnchanged(path: Path, fs: FileSystem): ConditionalWrite =
    if (!fs.hasPathCapability(path, IfEtag)) Always
    else
      try fs.getFileStatus(path) match {
          case status: EtagSource => Unchanged(status.getEtag)
          case _                  => Always
        }
      catch { case _: FileNotFoundException => Absent }
}
