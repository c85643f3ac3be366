package io.github.semyonsinchenko.safetensors.read

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.Snapshot
import io.github.semyonsinchenko.safetensors.read.columns.{FileField, MetadataColumn, RowColumn}
import io.github.semyonsinchenko.safetensors.read.conditions.Operand

/**
 * A table to read, independent of a query.
 *
 * @param schema all columns, including partition columns
 * @param conf   not part of equality: it defines how to access the files of the snapshot, not which files it has
 */
private[safetensors] final case class ReadSource(
    snapshot: Snapshot,
    options: ReadOptions,
    schema: StructType)(val conf: Configuration) {

  private[read] def layout: Layout = options.layout

  /** The columns of the layout, without partition columns. */
  private[read] def ownColumns: StructType =
    StructType(schema.filter(column => partition(column.name).isEmpty))

  /** The index of a partition column. None for other columns. */
  private[read] def partition(column: String): Option[Int] =
    Some(snapshot.partitions.fieldNames.indexOf(column)).filter(_ >= 0)

  /** The columns of a pruned schema. Spark may have removed or reordered columns and struct fields. */
  private[read] def columns(required: StructType): Vector[RowColumn] =
    required.fields.toVector.map { column =>
      partition(column.name) match {
        case Some(ordinal) => RowColumn.Partition(ordinal)
        // A tensor with that name hides the metadata column.
        case None if column.name == MetadataColumn.Name && !schema.fieldNames.contains(column.name) =>
          RowColumn.Metadata(FileField.of(column.dataType))
        case None => layout.column(column)
      }
    }

  private def isKnown(field: FileField.Known): Boolean =
    field != FileField.FileModificationTime || snapshot.files.forall(_.isListed)

  /** @throws InvalidRequestException if the layout does not support the schema, or a column does not fit what is stored */
  private[read] def check(): Unit = {
    ownColumns.foreach(layout.check)
    RecordedColumns.check(ownColumns, snapshot, layout)
    StoredTypes.check(ownColumns, snapshot, options, conf)
  }

  /** Resolves the parts of a name in a condition. None if Spark must evaluate the condition. */
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
