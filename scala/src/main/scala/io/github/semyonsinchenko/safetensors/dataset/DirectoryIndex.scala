package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration

import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.index.Keys

/** Maps tensors to the files of a directory. */
trait DirectoryIndex {

  /**
   * The files that have tensors with these names, by file name. None if the index cannot answer.
   *
   * @param keys    the names, or none for all names
   * @param accepts selects tensors of a file, if the index has their shapes and dtypes
   */
  def find(
      keys: Option[Keys],
      accepts: (String, TensorInfo) => Boolean,
      conf: Configuration): Option[Map[String, Located]]

  /** The file of the first tensor. None if the index has no order or cannot answer. */
  def firstFile(conf: Configuration): Option[String]
}

/** The result of an index look-up for a file. */
sealed trait Located extends Product with Serializable

object Located {

  /** Some of its tensors may match. Its header shows which. */
  case object Somewhere extends Located

  /** These tensors match. Their offsets start at the beginning of the file. */
  final case class At(tensors: Vector[TensorInfo]) extends Located
}
