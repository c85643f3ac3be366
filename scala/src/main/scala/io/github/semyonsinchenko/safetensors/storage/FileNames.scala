package io.github.semyonsinchenko.safetensors.storage

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path

/** Rules for the names of files and directories. */
object FileNames {

  // File systems have no longer names, and say it with an error of their own.
  private val Longest = 255

  /** Whether a name is a plain file name. A manifest or an index must not point outside its directory. */
  def isPlain(name: String): Boolean =
    name.nonEmpty && name != "." && name != ".." && !name.exists(c => c == '/' || c == '\\' || c == 0) &&
      name.getBytes(UTF_8).length <= Longest

  def isHidden(path: Path): Boolean = path.getName.startsWith("_") || path.getName.startsWith(".")

  /** Like in Spark's file sources, the name of a partition column may begin with `_`. */
  def isHiddenFolder(path: Path): Boolean =
    isHidden(path) && !(path.getName.startsWith("_") && path.getName.contains("="))
}
