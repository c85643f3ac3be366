package io.github.semyonsinchenko.safetensors.write

/** A row that cannot be written. Without stack trace: Spark prints an executor's frames, and the message says it all. */
final class InvalidRowException(message: String) extends RuntimeException(message, null, false, false)
