package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.Snapshot
import io.github.semyonsinchenko.safetensors.read.columns.{FileField, MetadataColumn, RowColumn}
import io.github.semyonsinchenko.safetensors.read.conditions.Operand

/**
 * A table to read, before a query has said what of it.
 *
 * @param schema all its columns, those of partitions among them
 * @param conf   takes no part in equality: it says how to reach the snapshot's files, not which they are
 */
private[safetensors] final case class ReadSource(
    snapshot: Snapshot,
    options: ReadOptions,
    schema: StructType)(val conf: Configuration) {

  private[read] def layout: Layout = options.layout

  /** The columns that the layout makes. */
  private[read] def ownColumns: StructType =
    StructType(schema.filter(column => partition(column.name).isEmpty))

  /** The place of a partition column among them; none for another column. */
  private[read] def partition(column: String): Option[Int] =
    Some(snapshot.partitions.fieldNames.indexOf(column)).filter(_ >= 0)

  /** The columns of a pruned schema: Spark may have removed columns and struct fields, or changed their order. */
  private[read] def columns(required: StructType): Vector[RowColumn] =
    required.fields.toVector.map { column =>
      partition(column.name) match {
        case Some(ordinal) => RowColumn.Partition(ordinal)
        // A tensor of that name hides it.
        case None if column.name == MetadataColumn.Name && !schema.fieldNames.contains(column.name) =>
          RowColumn.Metadata(FileField.of(column.dataType))
        case None => layout.column(column)
      }
    }

  private def isKnown(field: FileField.Known): Boolean =
    field != FileField.FileModificationTime || snapshot.files.forall(_.isListed)

  /** @throws InvalidRequestException for a schema that the layout cannot give */
  private[read] def check(): Unit = ownColumns.foreach(layout.check)

  /** What a name in a condition stands for, by its parts; none for what is left to Spark. */
  private[read] def operand(name: Seq[String]): Option[Operand] = name match {
    case Seq(column) if partition(column).isDefined =>
      partition(column).map(ordinal => Operand.Partition(ordinal, snapshot.partitions(ordinal).dataType))
    case Seq(column) if schema.fieldNames.contains(column) => layout.operand(schema(column), None)
    case Seq(column, field) if schema.fieldNames.contains(column) =>
      layout.operand(schema(column), Some(field))
    case Seq(MetadataColumn.Name, field) =>
      FileField.all.collectFirst {
        case known: FileField.Known if known.name == field && isKnown(known) => Operand.Metadata(known)
      }
    case _ => None
  }
}
