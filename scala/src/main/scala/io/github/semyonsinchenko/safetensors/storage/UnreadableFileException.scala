package io.github.semyonsinchenko.safetensors.storage

import io.github.semyonsinchenko.safetensors.common.DataException

/** A file that a query cannot read: which file and tensor, what is wrong, and what to do. */
final class UnreadableFileException(message: String, cause: Throwable = null)
    extends DataException(message, "SAFETENSORS_UNREADABLE_FILE", cause)
