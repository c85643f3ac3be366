package io.github.semyonsinchenko.safetensors.storage

import java.io.IOException

import org.apache.hadoop.fs.{FSError, Path}
import org.apache.parquet.ParquetRuntimeException

import io.github.semyonsinchenko.safetensors.common.DataException

/** A file could not be written, for example because the disk is full. */
final class StorageException(message: String, cause: Throwable)
    extends DataException(message, "SAFETENSORS_STORAGE", cause) {

  // "I/O error": the data is valid, and another executor may have enough space.
  override def getSqlState: String = "58030"
}

object StorageException {

  /** Adds the path to errors. */
  def locating[A](path: Path)(writing: => A): A =
    try writing
    catch {
      case e: IOException => throw failed(path, e.getMessage, e)
      // Hadoop's local file system, and Parquet when it closes a file, wrap the cause in these.
      case e @ (_: FSError | _: ParquetRuntimeException) if e.getCause != null =>
        throw failed(path, e.getCause.getMessage, e)
    }

  private def failed(path: Path, reason: String, cause: Throwable) = new StorageException(
    s"$path could not be written: $reason. Check free space and write permission, or use another directory.",
    cause)
}
