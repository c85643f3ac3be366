package io.github.semyonsinchenko.safetensors.dataset

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

/** Small files that are replaced as a whole: a reader finds the old text or the new one, never a part or nothing. */
object AtomicFile {

  def write(path: Path, text: String, conf: Configuration): Unit = path.getFileSystem(conf) match {
    case _: LocalFileSystem | _: RawLocalFileSystem => writeLocal(new File(path.toUri.getPath), text)
    case fs if renames(fs)                          => writeAndRename(path, text, fs, conf)
    case fs                                         => writeTo(path, text, fs)
  }

  private def writeLocal(file: File, text: String): Unit = {
    val fresh = new File(file.getParentFile, hidden(file.getName)).toPath
    Files.createDirectories(file.getParentFile.toPath)
    try {
      Files.write(fresh, text.getBytes(UTF_8))
      Files.move(fresh, file.toPath, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    } finally Files.deleteIfExists(fresh)
    // Left by another writer that went through Hadoop's checksums, it would make the new text look damaged.
    Files.deleteIfExists(new File(file.getParentFile, s".${file.getName}.crc").toPath)
    ()
  }

  // HDFS shows a file while it is written, and replaces one by renaming. In object stores a file appears when its stream is
  // closed, and renaming is a copy.
  private def renames(fs: FileSystem): Boolean = Set("hdfs", "viewfs", "webhdfs", "swebhdfs")(fs.getScheme)

  private def writeAndRename(path: Path, text: String, fs: FileSystem, conf: Configuration): Unit = {
    val fresh = new Path(path.getParent, hidden(path.getName))
    try {
      writeTo(fresh, text, fs)
      FileContext.getFileContext(path.toUri, conf).rename(fresh, path, Options.Rename.OVERWRITE)
    } finally { fs.delete(fresh, false); () }
  }

  private def writeTo(path: Path, text: String, fs: FileSystem): Unit = {
    val out = fs.create(path, true)
    try out.write(text.getBytes(UTF_8))
    finally out.close()
  }

  private def hidden(name: String): String = s".$name.${UUID.randomUUID()}.tmp"
}
