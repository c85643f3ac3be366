package io.github.semyonsinchenko.safetensors.write.shards

import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}

/** What to say of rows of a column that differ in dtype or shape. */
private[write] object Difference {

  /** Whether both are known to differ. */
  def between(one: ColumnRecord, other: ColumnRecord): Boolean =
    differ(one.dtype, other.dtype) || differ(one.shape, other.shape)

  private def differ[A](one: Option[A], other: Option[A]) = one.isDefined && other.isDefined && one != other

  def show(record: ColumnRecord): String = {
    val dims = record.shape.map(_.map(_.toString)).getOrElse(Seq("..."))
    s"${record.dtype.getOrElse("?")} ${(if (record.kind.hasOffsets) "?" +: dims else dims).mkString("[", ", ", "]")}"
  }

  /** What to do about rows that differ. */
  def remedy(one: ColumnRecord, other: ColumnRecord): String =
    if (one.kind.hasOffsets) "Rows of a ragged column differ in their first dimension alone. Make them alike"
    else if (isRagged(one, other))
      "Make the rows alike, or write all of them with the column in the option `ragged`, which lets their first dimension differ"
    else "Make the rows alike, or write with `name_col`"

  /** What to do about rows that differ from those of the dataset, which has them as `known`. */
  def remedyInDataset(found: ColumnRecord, known: ColumnRecord): String =
    if (found.dtype.exists(dtype => known.dtype.exists(_ != dtype)))
      s"Cast the column, name ${known.dtype.get} for it in the option `dtype` if it holds numbers, overwrite the dataset, or write to " +
        "another directory"
    else if (isRagged(found, known))
      s"Make the rows ${show(known)} too, or overwrite the dataset with all rows and the column in the option `ragged`: an append " +
        "leaves a fixed column fixed"
    else s"Make the rows ${show(known)} too, overwrite the dataset, or write to another directory"

  private def isRagged(one: ColumnRecord, other: ColumnRecord) = one.dtype == other.dtype &&
    one.kind == ColumnKind.Fixed && one.shape.zip(other.shape).exists { case (left, right) =>
      left.nonEmpty && right.nonEmpty && left.tail == right.tail
    }
}
