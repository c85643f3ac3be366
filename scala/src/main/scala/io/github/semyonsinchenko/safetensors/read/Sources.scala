package io.github.semyonsinchenko.safetensors.read

import java.io.{File, FileNotFoundException}
import java.nio.file.NoSuchFileException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.{ByteSource, Header, InvalidFileException}

/** Opens files: local ones by mapping, others as Hadoop streams. */
private[read] object Sources {

  def open(file: DataFile, conf: Configuration): ByteSource = {
    val path = new Path(file.path)
    try path.getFileSystem(conf) match {
        case _: LocalFileSystem | _: RawLocalFileSystem =>
          new MappedSource(new File(path.toUri.getPath), file.path)
        case fs => new StreamSource(fs.open(path), file.path, file.length)
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
