package io.github.semyonsinchenko.safetensors.dataset

/** How rows of a dataset are stored as tensors. */
sealed abstract class DatasetMode(val name: String) extends Product with Serializable

object DatasetMode {

  /** One tensor for each column and shard. Its first dimension counts the rows. */
  case object Batch extends DatasetMode("batch")

  /** One tensor for each row and column, named by the key of the row. */
  case object KeyValue extends DatasetMode("key_value")

  val all: Vector[DatasetMode] = Vector(Batch, KeyValue)
}
