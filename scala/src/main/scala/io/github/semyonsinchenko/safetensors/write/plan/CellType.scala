package io.github.semyonsinchenko.safetensors.write.plan

import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.types.{NumberType, TensorStruct}

/** The type of the cells in a column. */
sealed trait CellType extends Product with Serializable

object CellType {

  case object Tensor extends CellType

  /** Strings: vectors of the bytes of their UTF-8. */
  case object Text extends CellType

  /** Binary values: vectors of bytes. */
  case object Bytes extends CellType

  /** Cells with numbers, which are encoded. */
  sealed trait Numbers extends CellType {
    def number: NumberType
  }

  /** Single numbers: tensors of shape `[]`. */
  final case class Scalars(number: NumberType) extends Numbers

  final case class Arrays(number: NumberType, containsNull: Boolean) extends Numbers

  /** Nested arrays with `depth` levels, at least 2. */
  final case class Nested(number: NumberType, depth: Int) extends Numbers

  /** Spark ML vectors, dense or sparse. */
  case object Vectors extends Numbers {
    override def number: NumberType = NumberType.Double
  }

  /** @throws InvalidRequestException if there is a column whose type cannot be written */
  def check(schema: StructType): Unit =
    schema.find(field => of(field.dataType).isEmpty).foreach(field => throw refused(field))

  /** The error of a column whose type cannot be written. */
  private[plan] def refused(field: StructField): InvalidRequestException = new InvalidRequestException(
    s"Column `${field.name}` is ${field.dataType.simpleString}, which is not a tensor: expected numbers, booleans, arrays of them, vectors " +
      s"of Spark ML, strings, binary values, dates, timestamps, or a Tensor Struct, ${TensorStruct.dataType.simpleString}. Choose other " +
      "columns with the option `columns`, or cast it.")

  /** None for a type that cannot be written as a tensor. */
  def of(dataType: DataType): Option[CellType] = dataType match {
    case struct if TensorStruct.matches(struct) => Some(Tensor)
    case ArrayType(inner: ArrayType, _)         => nested(inner, 2)
    case ArrayType(element, containsNull)       => NumberType.of(element).map(Arrays(_, containsNull))
    case _: StringType                          => Some(Text)
    case BinaryType                             => Some(Bytes)
    // What rows hold: days, and microseconds.
    case DateType                                                     => Some(Scalars(NumberType.Int))
    case TimestampType | TimestampNTZType                             => Some(Scalars(NumberType.Long))
    case udt: UserDefinedType[_] if vectorTypes(udt.getClass.getName) => Some(Vectors)
    case other                                                        => NumberType.of(other).map(Scalars(_))
  }

  private def nested(array: ArrayType, depth: Int): Option[Nested] = array.elementType match {
    case inner: ArrayType => nested(inner, depth + 1)
    case element          => NumberType.of(element).map(Nested(_, depth))
  }

  // By name, because Spark ML may not be on the class path.
  private val vectorTypes =
    Set("org.apache.spark.ml.linalg.VectorUDT", "org.apache.spark.mllib.linalg.VectorUDT")
}
