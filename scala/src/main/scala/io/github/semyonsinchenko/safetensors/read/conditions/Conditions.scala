package io.github.semyonsinchenko.safetensors.read.conditions

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.index.Keys

/** A conjunction of conditions. */
private[read] final case class Conditions(all: Vector[Condition]) {

  def hold(facts: Facts): Boolean = all.forall(_.decide(facts).contains(true))

  /** The conditions that can be decided before a file is opened, and the others. */
  def split: (Conditions, Conditions) = {
    val (ofFile, others) = all.partition(_.isOfFile)
    (Conditions(ofFile), Conditions(others))
  }

  /** The tensor names that can satisfy the conditions. None if they do not restrict names. */
  def keys: Option[Keys] = all.flatMap(_.keys).reduceOption(_.intersect(_))

  /** Whether a tensor of the layout `long` satisfies the conditions. */
  def hold(file: DataFile, tensor: TensorInfo): Boolean = hold(Facts(file, _ => Some(tensor)))

  def isEmpty: Boolean = all.isEmpty
}
