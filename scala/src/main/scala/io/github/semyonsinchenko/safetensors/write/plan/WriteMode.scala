package io.github.semyonsinchenko.safetensors.write.plan

import io.github.semyonsinchenko.safetensors.dataset.Manifest

/** How rows become tensors. */
sealed trait WriteMode extends Product with Serializable {

  /** Its name in the manifest. */
  def name: String
}

object WriteMode {

  /** A tensor for each column and shard, of `rows` rows stacked. */
  final case class Batch(rows: Int, tail: Tail) extends WriteMode {
    override def name: String = Manifest.BatchMode
  }

  /**
   * A tensor for each row and column, named by the row.
   *
   * @param nameColumn the column whose value is the row's key
   * @param separator  between key and column name, where there are several columns
   * @param duplicates what becomes of a key that a shard has already
   */
  final case class KeyValue(nameColumn: String, separator: String, duplicates: Duplicates) extends WriteMode {
    override def name: String = Manifest.KeyValueMode
  }
}

/** What becomes of the rows at a task's end that are too few for a batch. */
sealed abstract class Tail(val name: String) extends Product with Serializable

object Tail {

  /** A smaller batch. */
  case object Write extends Tail("write")

  /** Nothing: they are left out. */
  case object Drop extends Tail("drop")

  /** A batch filled up with zeros, which do not count as samples. */
  case object Pad extends Tail("pad")

  val all: Vector[Tail] = Vector(Write, Drop, Pad)
}

/** What becomes of a row whose key a shard has already. */
sealed abstract class Duplicates(val name: String) extends Product with Serializable

object Duplicates {

  /** The write fails. */
  case object Fail extends Duplicates("fail")

  /** It takes the earlier one's place. */
  case object LastWin extends Duplicates("lastWin")

  val all: Vector[Duplicates] = Vector(Fail, LastWin)
}
