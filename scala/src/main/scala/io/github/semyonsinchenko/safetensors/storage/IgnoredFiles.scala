package io.github.semyonsinchenko.safetensors.storage

/** The files that a read skips instead of failing, by the options `ignoreCorruptFiles` and `ignoreMissingFiles`. */
final case class IgnoredFiles(corrupt: Boolean, missing: Boolean) {

  def any: Boolean = corrupt || missing

  def covers(error: UnreadableFileException): Boolean = error.fault match {
    case FileFault.Missing => missing
    case FileFault.Corrupt => corrupt
    case FileFault.Other   => false
  }
}

object IgnoredFiles {
  val None: IgnoredFiles = IgnoredFiles(corrupt = false, missing = false)
}
