package io.github.semyonsinchenko.safetensors.storage

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataInputStream, Path}
import org.apache.hadoop.fs.Options.OpenFileOptions
import org.apache.hadoop.util.functional.FutureIO

import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, InvalidFileException, RepeatedNames}

/** Opens local files as memory maps, and other files as Hadoop streams. */
private[safetensors] object Sources {

  /** @throws UnreadableFileException if the file is gone or has changed since it was listed; later reads throw it too */
  def open(file: StoredFile, conf: Configuration): ByteSource = {
    val path    = new Path(file.path)
    val fs      = path.getFileSystem(conf)
    val planned = new PlannedFile(file, fs)
    planned.reading(LocalFile.of(path, fs) match {
      case Some(local) => new MappedSource(local.toFile, planned)
      case None =>
        if (!file.isListed) planned.change.foreach(throw _)
        new StreamSource(stream(path, file, fs), planned)
    })
  }

  /** The status of the file in the file system. */
  def status(file: StoredFile, conf: Configuration): FileStatus = {
    val path = new Path(file.path)
    val fs   = path.getFileSystem(conf)
    new PlannedFile(file, fs).reading(fs.getFileStatus(path))
  }

  // The length saves a request to an object store. The ETag detects a replaced file.
  private def stream(path: Path, file: StoredFile, fs: FileSystem): FSDataInputStream = {
    val builder = fs.openFile(path)
      .opt(OpenFileOptions.FS_OPTION_OPENFILE_LENGTH, file.length.toString)
      .opt(OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, "vector, random")
      // Otherwise S3A fetches at least 64 KiB.
      .opt("fs.s3a.readahead.range", "0")
    file.status.foreach(builder.withFileStatus)
    FutureIO.awaitFuture(builder.build())
  }

  /** Reads the header. The error for an invalid header names the file and the violated rule. */
  def header(source: ByteSource): Header = header(source, RepeatedNames.LastCounts)

  /** Reads the header. `names` decides whether names may occur more than once. */
  def header(source: ByteSource, names: RepeatedNames): Header =
    try Header.read(source, names)
    catch {
      case e: InvalidFileException =>
        throw changeOf(source).getOrElse(new UnreadableFileException(e.getMessage, e, FileFault.Corrupt))
    }

  // Only the header shows that a file has grown.
  private def changeOf(source: ByteSource): Option[UnreadableFileException] = source match {
    case opened: OpenedFile => opened.file.change
    case _                  => None
  }
}
