package io.github.semyonsinchenko.safetensors.write.commit

import io.github.semyonsinchenko.safetensors.common.DataException
import io.github.semyonsinchenko.safetensors.dataset.{ColumnRecord, DatasetMode, Manifest}
import io.github.semyonsinchenko.safetensors.write.shards.{ColumnSummary, Difference}

/** The columns of a dataset after a commit. */
private[write] object CommittedColumns {

  /** The columns of some shards, and how errors name those. */
  private final case class Part(place: String, columns: Seq[ColumnRecord], isKept: Boolean = false)

  /**
   * Tasks without rows do not know all shapes. They count only if all are without rows.
   *
   * @param kept    the dataset whose shards stay
   * @param written what the tasks wrote
   * @throws DifferentRowsException if rows of batches differ in dtype or shape
   */
  def of(mode: DatasetMode, kept: Option[Manifest], written: Seq[ShardsWritten]): Seq[ColumnRecord] = {
    val old =
      kept.filter(_.shards.nonEmpty).map(manifest => Part("the dataset", manifest.schema, isKept = true))
    val added = written.filter(_.shards.nonEmpty).map(task => Part(task.shards.head.file, task.schema))
    val parts = old.toSeq ++ added
    mode match {
      case _ if parts.isEmpty   => written.headOption.toSeq.flatMap(_.schema)
      case DatasetMode.Batch    => parts.head.columns.map(column => agreed(column.name, parts))
      case DatasetMode.KeyValue => ColumnSummary.merge(parts.map(_.columns))
    }
  }

  private def agreed(name: String, parts: Seq[Part]): ColumnRecord = {
    val found         = parts.flatMap(part => part.columns.find(_.name == name).map(part -> _))
    val (part, known) = found.find(_._2.shape.isDefined).getOrElse(found.head)
    for ((other, column) <- found if Difference.between(known, column)) {
      val remedy =
        if (part.isKept) Difference.remedyInDataset(column, known) else Difference.remedy(column, known)
      throw new DifferentRowsException(
        s"Column `$name`: ${Difference.show(column)} in ${other.place}, but ${Difference.show(
            known)} in ${part.place}. $remedy.")
    }
    known.copy(sparkType = found.flatMap(_._2.sparkType).headOption)
  }
}

/** Rows that different tasks or writes have written differ in dtype or shape. */
final class DifferentRowsException(message: String)
    extends DataException(message, "SAFETENSORS_DIFFERENT_ROWS")
