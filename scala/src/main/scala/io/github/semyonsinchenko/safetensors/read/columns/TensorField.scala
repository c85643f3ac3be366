package io.github.semyonsinchenko.safetensors.read.columns

import org.apache.spark.sql.types.{DataType, StructType}

/** A field of the Tensor Struct. */
private[read] sealed trait TensorField

private[read] object TensorField {
  case object Data  extends TensorField
  case object Shape extends TensorField
  case object Dtype extends TensorField

  private val byName: Map[String, TensorField] = Map("data" -> Data, "shape" -> Shape, "dtype" -> Dtype)

  /** The fields of a Tensor Struct after pruning. Empty for other types, which a read never gets. */
  def of(column: DataType): Vector[TensorField] = column match {
    case struct: StructType => struct.fieldNames.toVector.flatMap(byName.get)
    case _                  => Vector.empty
  }
}
