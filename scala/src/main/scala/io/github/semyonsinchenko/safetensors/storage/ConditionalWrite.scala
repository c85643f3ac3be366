package io.github.semyonsinchenko.safetensors.storage

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{EtagSource, FileSystem, FSDataOutputStream, Path}

/** A condition on the target of a write. Only stores with conditional writes check it: S3A since Hadoop 3.4.2. */
sealed trait ConditionalWrite extends Product with Serializable {

  /** Opens a stream that creates or replaces the file on close, if the condition holds then. */
  def open(path: Path, fs: FileSystem): FSDataOutputStream
}

object ConditionalWrite {

  // Hadoop's names of `createFile` options, and of file system capabilities.
  private[storage] val IfAbsent = "fs.option.create.conditional.overwrite"
  private val IfEtag            = "fs.option.create.conditional.overwrite.etag"

  /** For file systems without conditional writes. */
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

  /** The condition that the file does not change from now on. */
  def ifUnchanged(path: Path, fs: FileSystem): ConditionalWrite =
    if (!fs.hasPathCapability(path, IfEtag)) Always
    else
      try fs.getFileStatus(path) match {
          case status: EtagSource => Unchanged(status.getEtag)
          case _                  => Always
        }
      catch { case _: FileNotFoundException => Absent }
}
