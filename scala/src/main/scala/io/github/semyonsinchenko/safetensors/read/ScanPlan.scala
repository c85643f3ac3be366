package io.github.semyonsinchenko.safetensors.read

import org.apache.spark.sql.types.StructType

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, InvalidRequestException, TensorStruct}

/**
 * A tensor that a query needs.
 *
 * @param fields   the fields of the Tensor Struct that it needs, in the order that it wants them
 * @param nullable whether a file without the tensor is right
 */
final case class TensorColumn(name: String, fields: Vector[TensorField], nullable: Boolean)

/** A field of the Tensor Struct. */
sealed trait TensorField

object TensorField {
  case object Data  extends TensorField
  case object Shape extends TensorField
  case object Dtype extends TensorField

  private val byName: Map[String, TensorField] = Map("data" -> Data, "shape" -> Shape, "dtype" -> Dtype)

  def of(name: String): TensorField = byName(name)
}

/** What is read: these tensors of each of these files. Made on the driver, handed to every task. */
final case class ScanPlan(files: Seq[DataFile], columns: Vector[TensorColumn])

object ScanPlan {

  /** @param required the columns and fields that the query needs, of a schema that [[checkSchema]] passed */
  def of(files: Seq[DataFile], required: StructType): ScanPlan = ScanPlan(
    files,
    required.fields.toVector.map { column =>
      val fields = column.dataType.asInstanceOf[StructType].fieldNames.toVector.map(TensorField.of)
      TensorColumn(column.name, fields, column.nullable)
    }
  )

  /** @throws InvalidRequestException if a column is no Tensor Struct */
  def checkSchema(schema: StructType): Unit = schema.foreach { column =>
    if (!TensorStruct.matches(column.dataType)) throw new InvalidRequestException(
      s"Column `${column.name}` of the schema is ${column.dataType.simpleString}, but tensors are read as " +
        s"${TensorStruct.dataType.simpleString}. Give it that type, and decode with `st_to_array`.")
  }
}
