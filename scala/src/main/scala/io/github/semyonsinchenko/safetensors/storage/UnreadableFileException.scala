package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.common.DataException

/** A file that a query cannot read. The message names the file, the tensor, the error and the fix. */
final class UnreadableFileException(message: String, cause: Throwable = null)
    extends DataException(message, "SAFETENSORS_UNREADABLE_FILE", cause)
