package io.github.semyonsinchenko.safetensors.functions

import io.github.semyonsinchenko.safetensors.common.DataException

/** A row that a tensor function cannot evaluate. The message says what is wrong and what to do. */
final class InvalidTensorException(function: String, message: String)
    extends DataException(s"$function: $message", "SAFETENSORS_INVALID_TENSOR")
