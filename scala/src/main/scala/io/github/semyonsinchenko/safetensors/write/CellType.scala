package io.github.semyonsinchenko.safetensors.write

import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.dataset.{NumberType, TensorStruct}

/** What the cells of a column are. */
sealed trait CellType extends Product with Serializable

object CellType {

  case object Tensor extends CellType

  /** Arrays of numbers. */
  final case class Numbers(number: NumberType, containsNull: Boolean) extends CellType

  /** None for a type that is no tensor. */
  def of(dataType: DataType): Option[CellType] = dataType match {
    case struct if TensorStruct.matches(struct) => Some(Tensor)
    case ArrayType(element, containsNull)       => NumberType.of(element).map(Numbers(_, containsNull))
    case _                                      => None
  }
}
