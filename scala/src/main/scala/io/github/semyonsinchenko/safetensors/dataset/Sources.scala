package io.github.semyonsinchenko.safetensors.dataset

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, InvalidFileException}

/** Opens files: local ones by mapping, others as Hadoop streams. */
private[safetensors] object Sources {

  def open(file: DataFile, conf: Configuration): ByteSource = {
    val path = new Path(file.path)
    val fs   = path.getFileSystem(conf)
    try LocalFile.of(path, fs) match {
        case Some(local) => new MappedSource(local.toFile, file.path)
        case None        => new StreamSource(fs.open(path), file.path, file.length)
      }
    catch {
      case _: FileNotFoundException | _: NoSuchFileException =>
        throw new UnreadableFileException(
          s"${file.path} is gone: it was there when the query was planned. Run the query again.")
    }
  }

  /** The file's header, or an error that names the file and the rule that it breaks. */
  def header(source: ByteSource): Header =
    try Header.read(source)
    catch { case e: InvalidFileException => throw new UnreadableFileException(e.getMessage, e) }
}
