package io.github.semyonsinchenko.safetensors.read.columns

import scala.util.Try

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.types._

import io.github.semyonsinchenko.safetensors.codec.Conversion
import io.github.semyonsinchenko.safetensors.dataset.ColumnKind
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._
import io.github.semyonsinchenko.safetensors.types.TensorStruct

/** The Spark types that columns can be decoded to. */
private[read] object DecodedTypes {

  /** The type that was written, or else the one that has all values of the dtype. A Tensor Struct if no type has. */
  def of(column: StoredColumn): DataType = written(column).getOrElse(byKind(column))

  /** What fits instead, if a column cannot be decoded to this type. */
  def misfit(to: DataType, column: StoredColumn): Option[String] =
    Option.unless(fits(to, column) || written(column).exists(same(_, to)))(choices(column))

  /** Whether some column can be decoded to this type. */
  def isSupported(to: DataType): Boolean = to match {
    case _: StringType | BinaryType | DateType | TimestampType | TimestampNTZType => true
    case other => vector(other) || dtypeOf(levels(other)._2).isDefined
  }

  /** The dtype with the same values as a type of numbers or booleans. */
  def dtypeOf(number: DataType): Option[Dtype] = number match {
    case BooleanType => Some(BOOL)
    case ByteType    => Some(I8)
    case ShortType   => Some(I16)
    case IntegerType => Some(I32)
    case LongType    => Some(I64)
    case FloatType   => Some(F32)
    case DoubleType  => Some(F64)
    case _           => None
  }

  /** The depth of nested arrays, and the type of their elements. */
  def levels(of: DataType): (Int, DataType) = of match {
    case ArrayType(element, _) =>
      val (inner, last) = levels(element)
      (inner + 1, last)
    case other => (0, other)
  }

  /** Whether it is the type of Spark ML's vectors, which may not be on the class path. */
  def vector(of: DataType): Boolean = vectors.contains(of.getClass.getName)

  private val vectors = Set("org.apache.spark.ml.linalg.VectorUDT", "org.apache.spark.mllib.linalg.VectorUDT")

  private lazy val newVector: Option[DataType] = vectors.headOption.flatMap(name =>
    Try(Class.forName(name).getDeclaredConstructor().newInstance().asInstanceOf[DataType]).toOption)

  private lazy val vectorText = newVector.map(_.catalogString)

  /** The type in the manifest, if it can be read and the column can be decoded to it. */
  private def written(column: StoredColumn): Option[DataType] =
    column.written.flatMap(named).filter(to => TensorStruct.matches(to) || canConvert(to, column))

  /** The type that a manifest names; none if it is not known here. */
  def named(text: String): Option[DataType] =
    if (vectorText.contains(text)) newVector
    else Try(CatalystSqlParser.parseDataType(text)).toOption.map(withoutNulls)

  // A manifest does not say whether elements may be null. None is.
  private def withoutNulls(of: DataType): DataType = of match {
    case struct if TensorStruct.matches(struct) => TensorStruct.dataType
    case ArrayType(element, _)                  => ArrayType(withoutNulls(element), containsNull = false)
    case text: StringType if text.catalogString.contains("char") => StringType
    case other                                                   => other
  }

  private def same(one: DataType, other: DataType): Boolean = withoutNulls(one) == withoutNulls(other)

  /** Whether the values that were written as this type can be decoded to it, as far as its form goes. */
  private def canConvert(to: DataType, column: StoredColumn): Boolean = ofKind(column.kind) match {
    case Some(own) => isLike(own, to)
    case None =>
      val (depth, element) = levels(to)
      Conversion.sources.contains(column.dtype) &&
        (if (vector(to)) isVector(column)
         else dtypeOf(element).isDefined && hasDepth(depth, column))
  }

  private def fits(to: DataType, column: StoredColumn): Boolean =
    TensorStruct.matches(to) || canConvert(to, column) && (column.kind match {
      case ColumnKind.Fixed | ColumnKind.Ragged =>
        elements(column.dtype).contains(if (vector(to)) DoubleType else levels(to)._2)
      case _ => true
    })

  // An array of one level has the elements in row-major order.
  private def hasDepth(depth: Int, column: StoredColumn): Boolean =
    depth == column.dims || depth == 1 && column.dims > 0 ||
      depth == 0 && !column.kind.hasOffsets && column.shape.product == 1

  private def isVector(column: StoredColumn): Boolean = column.dims == 1

  private def isLike(own: DataType, to: DataType): Boolean = (own, to) match {
    case (StringType, _: StringType) => true
    case _                           => own == to
  }

  private def ofKind(kind: ColumnKind): Option[DataType] = kind match {
    case ColumnKind.Text                      => Some(StringType)
    case ColumnKind.Binary                    => Some(BinaryType)
    case ColumnKind.Date                      => Some(DateType)
    case ColumnKind.Timestamp                 => Some(TimestampType)
    case ColumnKind.TimestampNtz              => Some(TimestampNTZType)
    case ColumnKind.Fixed | ColumnKind.Ragged => None
  }

  private def byKind(column: StoredColumn): DataType = ofKind(column.kind).getOrElse(
    elements(column.dtype).headOption.fold[DataType](TensorStruct.dataType)(nested(_, column.dims)))

  private def nested(element: DataType, depth: Int): DataType =
    Iterator.iterate(element)(ArrayType(_, containsNull = false)).drop(depth).next()

  /** The types that have all values of a dtype, the nearest first. None has all of U64. */
  private def elements(dtype: Dtype): Vector[DataType] = dtype match {
    case BOOL      => Vector(BooleanType)
    case I8        => Vector(ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
    case U8        => Vector(ShortType, IntegerType, LongType, FloatType, DoubleType)
    case I16       => Vector(ShortType, IntegerType, LongType, FloatType, DoubleType)
    case U16       => Vector(IntegerType, LongType, FloatType, DoubleType)
    case I32       => Vector(IntegerType, LongType, DoubleType)
    case U32       => Vector(LongType, DoubleType)
    case I64 | U64 => Vector(LongType)
    case F64       => Vector(DoubleType)
    case other     => if (Conversion.sources.contains(other)) Vector(FloatType, DoubleType) else Vector.empty
  }

  private def choices(column: StoredColumn): String = {
    val types = ofKind(column.kind).map(Vector(_)).getOrElse {
      val ofElements = elements(column.dtype).map(nested(_, column.dims))
      written(column).fold(ofElements)(_ +: ofElements.filterNot(written(column).contains))
    }
    (types :+ TensorStruct.dataType).map(_.simpleString).mkString(" or ")
  }
}
