package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.types.StructField

/** A column of the rows that a query needs. */
private[read] sealed trait RowColumn extends Product with Serializable

private[read] object RowColumn {

  /** A partition column, by its index among the partition columns. */
  final case class Partition(ordinal: Int) extends RowColumn

  /** The column `_metadata`, with the needed fields. */
  final case class Metadata(fields: Vector[FileField]) extends RowColumn

  /** A column of the layout. Its value differs between the rows of a file. */
  sealed trait OfLayout extends RowColumn

  /** A tensor's name, in the layout `long`. */
  case object Key extends OfLayout

  /**
   * A Tensor Struct.
   *
   * @param name     the column name
   * @param fields   the struct fields that the query needs, in its order
   * @param nullable whether a file may lack the tensor
   */
  final case class Tensor(name: String, fields: Vector[TensorField], nullable: Boolean) extends OfLayout

  def tensor(column: StructField): Tensor =
    Tensor(column.name, TensorField.of(column.dataType), column.nullable)
}
