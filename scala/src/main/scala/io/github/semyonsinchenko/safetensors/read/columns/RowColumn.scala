package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.types.{DataType, StructField, StructType}

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

  /** A tensor's name as a whole number. */
  final case class NumberKey(dataType: DataType) extends OfLayout

  /** The column of a tensor, or of a tensor and its offsets. */
  sealed trait OfTensor extends OfLayout {
    def name: String

    /** Whether a file may lack the tensor. */
    def nullable: Boolean
  }

  /**
   * A Tensor Struct.
   *
   * @param fields the struct fields that the query needs, in its order
   */
  final case class Tensor(name: String, fields: Vector[TensorField], nullable: Boolean) extends OfTensor

  /** A tensor's values as another Spark type, such as `array<float>`. */
  final case class Decoded(name: String, dataType: DataType, nullable: Boolean) extends OfTensor

  def tensor(column: StructField): Tensor =
    Tensor(column.name, TensorField.of(column.dataType), column.nullable)

  /** Pruning leaves only a part of the struct. No other struct is ever read. */
  def ofTensor(column: StructField): OfTensor = column.dataType match {
    case _: StructType => tensor(column)
    case other         => Decoded(column.name, other, column.nullable)
  }
}
