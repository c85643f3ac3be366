package io.github.semyonsinchenko.safetensors.write

import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.dataset.TensorStruct
import io.github.semyonsinchenko.safetensors.format.Dtype

/** What the cells of a column are. */
sealed trait CellType extends Product with Serializable

object CellType {

  case object Tensor extends CellType

  /** Arrays of numbers. */
  final case class Numbers(number: Number, containsNull: Boolean) extends CellType

  /** None for a type that is no tensor. */
  def of(dataType: DataType): Option[CellType] = dataType match {
    case struct if TensorStruct.matches(struct) => Some(Tensor)
    case ArrayType(element, containsNull)       => Number.of(element).map(Numbers(_, containsNull))
    case _                                      => None
  }
}

/** A type of numbers in Spark, and the dtype that they take when none is asked for. */
sealed abstract class Number(val dtype: Dtype) extends Product with Serializable

object Number {
  case object Byte   extends Number(Dtype.I8)
  case object Short  extends Number(Dtype.I16)
  case object Int    extends Number(Dtype.I32)
  case object Long   extends Number(Dtype.I64)
  case object Float  extends Number(Dtype.F32)
  case object Double extends Number(Dtype.F64)

  def of(dataType: DataType): Option[Number] = dataType match {
    case ByteType    => Some(Byte)
    case ShortType   => Some(Short)
    case IntegerType => Some(Int)
    case LongType    => Some(Long)
    case FloatType   => Some(Float)
    case DoubleType  => Some(Double)
    case _           => None
  }
}
