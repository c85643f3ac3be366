package io.github.semyonsinchenko.safetensors.storage

import org.apache.hadoop.fs.Path

/** Rules for the names of files and directories. */
object FileNames {

  /** Whether a name is a plain file name. A manifest or an index must not point outside its directory. */
  def isPlain(name: String): Boolean =
    name.nonEmpty && name != "." && name != ".." && name.indexOf('/') < 0 && name.indexOf('\\') < 0

  def isHidden(path: Path): Boolean = path.getName.startsWith("_") || path.getName.startsWith(".")

  /** Like in Spark's file sources, the name of a partition column may begin with `_`. */
  def isHiddenFolder(path: Path): Boolean =
    isHidden(path) && !(path.getName.startsWith("_") && path.getName.contains("="))
}
