package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.common.DataException

/**
 * A file that a query cannot read. The message names the file, the tensor, the error and the fix.
 *
 * @param fault decides whether `ignoreCorruptFiles` or `ignoreMissingFiles` covers the error
 */
final class UnreadableFileException(
    message: String,
    cause: Throwable = null,
    val fault: FileFault = FileFault.Other)
    extends DataException(message, "SAFETENSORS_UNREADABLE_FILE", cause)

/** Why a file cannot be read. */
sealed trait FileFault extends Product with Serializable

object FileFault {

  /** The file does not exist. */
  case object Missing extends FileFault

  /** The content is not valid, or not that of the expected file. */
  case object Corrupt extends FileFault

  /** The file may be valid, but it lacks something that the query needs, or the query may not read it. */
  case object Other extends FileFault
}
