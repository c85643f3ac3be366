package io.github.semyonsinchenko.safetensors.read.conditions

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.index.Keys

/** Conditions of which all must hold. */
private[read] final case class Conditions(all: Vector[Condition]) {

  def hold(facts: Facts): Boolean = all.forall(_.decide(facts).contains(true))

  /** Those that are decided before a file is opened, and the others. */
  def split: (Conditions, Conditions) = {
    val (ofFile, others) = all.partition(_.isOfFile)
    (Conditions(ofFile), Conditions(others))
  }

  /** Names of tensors to which they come down; none where any may do. */
  def keys: Option[Keys] = all.flatMap(_.keys).reduceOption(_.intersect(_))

  /** Whether a tensor of the layout `long` meets them. */
  def hold(file: DataFile, tensor: TensorInfo): Boolean = hold(Facts(file, _ => Some(tensor)))

  def isEmpty: Boolean = all.isEmpty
}
