package io.github.semyonsinchenko.safetensors

import java.nio.file.{Files, Path}
import java.util.Comparator

/** An empty directory for the time of one test. */
object TempDir {
  def apply[A](body: Path => A): A = {
    val directory = Files.createTempDirectory("safetensors")
    try body(directory)
    finally Files.walk(directory).sorted(Comparator.reverseOrder[Path]).forEach(Files.delete(_))
  }

  /** The names of what is in a directory, hidden files too. */
  def names(directory: Path): Seq[String] = directory.toFile.list.toSeq.sorted
}
