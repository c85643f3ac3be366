package io.github.semyonsinchenko.safetensors.write

import io.github.semyonsinchenko.safetensors.dataset.DataException

/** A row that cannot be written: which column and row, what is wrong, and what to do. */
final class InvalidRowException(message: String) extends DataException(message, "SAFETENSORS_INVALID_ROW")
