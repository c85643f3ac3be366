package io.github.semyonsinchenko.safetensors.read.conditions

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.format.TensorInfo
import io.github.semyonsinchenko.safetensors.read.columns.{FileField, LongSchema, RowColumn}
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** A value that a condition compares, in Spark's internal representation. Shapes are a `Vector[Long]`. */
private[read] sealed trait Operand extends Product with Serializable {

  def dataType: DataType

  /** The value, or null for SQL's NULL. */
  def value(facts: Facts): Any
}

private[read] object Operand {

  /** A value that is known before a file is opened. */
  sealed trait OfFile extends Operand {
    protected def of(file: DataFile): Any
    override final def value(facts: Facts): Any = of(facts.file)
  }

  final case class Partition(ordinal: Int, dataType: DataType) extends OfFile {
    override protected def of(file: DataFile): Any = file.partition(ordinal)
  }

  final case class Metadata(field: FileField.Known) extends OfFile {
    override def dataType: DataType                = field.dataType
    override protected def of(file: DataFile): Any = field.of(file)
  }

  /** A value from the header entry of a tensor. */
  sealed trait OfTensor extends Operand {
    def column: RowColumn.OfTensor
    protected def of(tensor: TensorInfo): Any
    override final def value(facts: Facts): Any = facts.tensor(column).map(of).orNull
  }

  private val long = RowColumn.Tensor(LongSchema.Tensor.name, Vector.empty, nullable = false)

  case object Key extends OfTensor {
    override def column: RowColumn.OfTensor            = long
    override def dataType: DataType                    = StringType
    override protected def of(tensor: TensorInfo): Any = UTF8String.fromString(tensor.name)
  }

  final case class Dtype(column: RowColumn.Tensor) extends OfTensor {
    override def dataType: DataType                    = StringType
    override protected def of(tensor: TensorInfo): Any = UTF8String.fromString(tensor.dtype.name)
  }

  /** @param skipped the number of leading dimensions that the layout turns into rows */
  final case class Shape(column: RowColumn.Tensor, skipped: Int) extends OfTensor {
    override def dataType: DataType                    = ArrayType(IntegerType)
    override protected def of(tensor: TensorInfo): Any = tensor.shape.drop(skipped).toVector
  }

  /** The struct itself or its `data`. The header only shows whether it exists. */
  final case class Presence(column: RowColumn.OfTensor) extends OfTensor {
    override def dataType: DataType                    = NullType
    override protected def of(tensor: TensorInfo): Any = true
  }

  /** The operand for a tensor column or one of its fields. */
  def ofTensor(column: StructField, field: Option[String], skippedDims: Int): Option[Operand] =
    RowColumn.ofTensor(column) match {
      case tensor: RowColumn.Tensor if TensorStruct.matches(column.dataType) =>
        of(tensor.copy(fields = Vector.empty), field, skippedDims)
      case decoded: RowColumn.Decoded if field.isEmpty => Some(Presence(decoded))
      case _                                           => None
    }

  private def of(tensor: RowColumn.Tensor, field: Option[String], skippedDims: Int): Option[Operand] =
    field match {
      case None | Some("data") => Some(Presence(tensor))
      case Some("dtype")       => Some(Dtype(tensor))
      case Some("shape")       => Some(Shape(tensor, skippedDims))
      case _                   => None
    }
}
