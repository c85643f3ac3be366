package io.github.semyonsinchenko.safetensors.storage

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FSDataInputStream, Path}
import org.apache.hadoop.fs.Options.OpenFileOptions
import org.apache.hadoop.util.functional.FutureIO

import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, InvalidFileException, RepeatedNames}

/** Opens files: local ones by mapping, others as Hadoop streams. */
private[safetensors] object Sources {

  /** @throws UnreadableFileException if the file is gone or has changed since it was listed, here or when bytes are read */
  def open(file: StoredFile, conf: Configuration): ByteSource = {
    val path    = new Path(file.path)
    val fs      = path.getFileSystem(conf)
    val planned = new PlannedFile(file, fs)
    planned.reading(LocalFile.of(path, fs) match {
      case Some(local) => new MappedSource(local.toFile, planned)
      case None        => new StreamSource(stream(path, file, fs), planned)
    })
  }

  // Object stores that know the file's length do not ask for it. With its ETag they tell whether it has been replaced.
  private def stream(path: Path, file: StoredFile, fs: FileSystem): FSDataInputStream = {
    val builder = fs.openFile(path)
      .opt(OpenFileOptions.FS_OPTION_OPENFILE_LENGTH, file.length.toString)
      .opt(OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, "vector, random")
      // S3A would fetch 64 KiB where fewer bytes are asked for.
      .opt("fs.s3a.readahead.range", "0")
    file.status.foreach(builder.withFileStatus)
    FutureIO.awaitFuture(builder.build())
  }

  /** The file's header, or an error that names the file and the rule that it breaks. */
  def header(source: ByteSource): Header = header(source, RepeatedNames.LastCounts)

  /** The same, of which `names` says whether it may repeat names. */
  def header(source: ByteSource, names: RepeatedNames): Header =
    try Header.read(source, names)
    catch {
      case e: InvalidFileException =>
        throw changeOf(source).getOrElse(new UnreadableFileException(e.getMessage, e))
    }

  // Where a file has become longer, nothing but its header tells.
  private def changeOf(source: ByteSource): Option[UnreadableFileException] = source match {
    case opened: OpenedFile => opened.file.change
    case _                  => None
  }
}
