package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.types.StructField

/** A column of the rows that a query needs. */
private[read] sealed trait RowColumn extends Product with Serializable

private[read] object RowColumn {

  /** A partition column, by its place among them. */
  final case class Partition(ordinal: Int) extends RowColumn

  /** The column `_metadata`, with these of its fields. */
  final case class Metadata(fields: Vector[FileField]) extends RowColumn

  /** One of the layout's own: from here on the value differs between the rows of a file. */
  sealed trait OfLayout extends RowColumn

  /** A tensor's name, in the layout `long`. */
  case object Key extends OfLayout

  /**
   * A Tensor Struct.
   *
   * @param name     of the column
   * @param fields   those of the struct that the query needs, in the order that it wants them
   * @param nullable whether a file without the tensor is right
   */
  final case class Tensor(name: String, fields: Vector[TensorField], nullable: Boolean) extends OfLayout

  def tensor(column: StructField): Tensor =
    Tensor(column.name, TensorField.of(column.dataType), column.nullable)
}
