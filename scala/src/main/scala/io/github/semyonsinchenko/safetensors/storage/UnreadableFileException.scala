package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.common.DataException

/**
 * A file that a query cannot read. The message names the file, the tensor, the error and the fix.
 *
 * @param isMissing whether there is no such file
 */
final class UnreadableFileException(message: String, cause: Throwable = null, val isMissing: Boolean = false)
    extends DataException(message, "SAFETENSORS_UNREADABLE_FILE", cause)
