package io.github.semyonsinchenko.safetensors.storage

import org.apache.hadoop.fs.Path

/** Rules for the names of files and directories. */
object FileNames {

  /** Whether a name stays in its directory: a manifest or an index must not lead a reader elsewhere. */
  def isPlain(name: String): Boolean =
    name.nonEmpty && name != "." && name != ".." && !name.exists(c => c == '/' || c == '\\')

  def isHidden(path: Path): Boolean = path.getName.startsWith("_") || path.getName.startsWith(".")

  /** As Spark's own sources have it: a partition column may begin with `_`. */
  def isHiddenFolder(path: Path): Boolean =
    isHidden(path) && !(path.getName.startsWith("_") && path.getName.contains("="))
}
