package io.github.semyonsinchenko.safetensors.dataset

import org.apache.hadoop.conf.Configuration

import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.index.Keys

/** Tells in which files of a directory tensors are. */
trait DirectoryIndex {

  /**
   * The files that have tensors of these names, by file name; none where the index cannot tell.
   *
   * @param keys    all names, where there are none
   * @param accepts whether a tensor of a file is wanted, where the index knows its shape and dtype
   */
  def find(
      keys: Option[Keys],
      accepts: (String, TensorInfo) => Boolean,
      conf: Configuration): Option[Map[String, Located]]

  /** The file of the first tensor; none where the index has no order of its own, or cannot tell. */
  def firstFile(conf: Configuration): Option[String]
}

/** What an index says of a file. */
sealed trait Located extends Product with Serializable

object Located {

  /** Some of its tensors are wanted. Its header tells which. */
  case object Somewhere extends Located

  /** These tensors are wanted; their offsets are from the file's begin. */
  final case class At(tensors: Vector[TensorInfo]) extends Located
}
