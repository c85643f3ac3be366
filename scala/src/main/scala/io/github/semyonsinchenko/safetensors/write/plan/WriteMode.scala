package io.github.semyonsinchenko.safetensors.write.plan

import io.github.semyonsinchenko.safetensors.dataset.DatasetMode

/** How rows become tensors. */
sealed trait WriteMode extends Product with Serializable {

  /** The mode that the manifest names. */
  def ofDataset: DatasetMode
}

object WriteMode {

  /** One tensor per column and shard, which stacks rows. */
  final case class Batch(rows: BatchRows, tail: Tail) extends WriteMode {
    override def ofDataset: DatasetMode = DatasetMode.Batch
  }

  /**
   * One tensor per row and column, named by the key of the row.
   *
   * @param nameColumn the column with the key
   * @param separator  the text between key and column name if there are several columns
   * @param duplicates how to treat a key that the shard already has
   * @param buckets    how many buckets to divide the keys into, so that each shard has keys of one; none for no buckets
   */
  final case class KeyValue(
      nameColumn: String,
      separator: String,
      duplicates: Duplicates,
      buckets: Option[Int] = None)
      extends WriteMode {
    override def ofDataset: DatasetMode = DatasetMode.KeyValue
  }
}

/** How many rows a shard has. */
sealed trait BatchRows extends Product with Serializable

object BatchRows {

  final case class Exactly(count: Int) extends BatchRows

  /** As many as fill the target size of a shard. */
  case object Filling extends BatchRows
}

/** How to treat the last rows of a task if they do not fill a batch. */
sealed abstract class Tail(val name: String) extends Product with Serializable

object Tail {

  /** Write a smaller batch. */
  case object Write extends Tail("write")

  /** Leave the rows out. */
  case object Drop extends Tail("drop")

  /** Fill the batch with zeros, which do not count as samples. */
  case object Pad extends Tail("pad")

  val all: Vector[Tail] = Vector(Write, Drop, Pad)
}

/** How to treat a row whose key the shard already has. */
sealed abstract class Duplicates(val name: String) extends Product with Serializable

object Duplicates {

  /** The write fails. */
  case object Fail extends Duplicates("fail")

  /** The row replaces the earlier one. */
  case object LastWin extends Duplicates("lastWin")

  val all: Vector[Duplicates] = Vector(Fail, LastWin)
}
