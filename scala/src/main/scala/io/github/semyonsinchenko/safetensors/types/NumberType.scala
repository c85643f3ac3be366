package io.github.semyonsinchenko.safetensors.types

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

import io.github.semyonsinchenko.safetensors.codec.{Encoder, Encoders, Rounding}
import io.github.semyonsinchenko.safetensors.format.Dtype

/**
 * A type of numbers in Spark: of an array's elements or of a column. Booleans are the numbers 0 and 1.
 *
 * @param dtype the dtype with the same values, used when the write does not name one
 */
sealed abstract class NumberType(val sparkType: DataType, val dtype: Dtype) extends Product
    with Serializable {

  /** The encoder from arrays of this type to `target`. It is chosen once per column. */
  final def encoder(target: Dtype, rounding: Rounding): NumberType.Encode = {
    val converting = convert(target, rounding)
    if (target == dtype && NumberType.IsLittleEndian) new CopyElements(sparkType.defaultSize, converting)
    else converting
  }

  protected def convert(target: Dtype, rounding: Rounding): NumberType.Encode

  /** A cell with a single number, as an array of one element. */
  def single(row: SpecializedGetters, ordinal: Int): ArrayData
}

object NumberType {

  /** Writes the elements of an array without nulls to a little-endian buffer with enough room. */
  trait Encode extends Serializable {

    /** @throws io.github.semyonsinchenko.safetensors.codec.UnencodableValueException for a value out of the dtype's range */
    def apply(values: ArrayData, out: ByteBuffer): Unit
  }

  case object Boolean extends NumberType(BooleanType, Dtype.BOOL) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.booleans(target, rounding))(_.toBooleanArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getBoolean(ordinal)))
  }
  case object Byte extends NumberType(ByteType, Dtype.I8) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.bytes(target, rounding))(_.toByteArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getByte(ordinal)))
  }
  case object Short extends NumberType(ShortType, Dtype.I16) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.shorts(target, rounding))(_.toShortArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getShort(ordinal)))
  }
  case object Int extends NumberType(IntegerType, Dtype.I32) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.ints(target, rounding))(_.toIntArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getInt(ordinal)))
  }
  case object Long extends NumberType(LongType, Dtype.I64) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.longs(target, rounding))(_.toLongArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getLong(ordinal)))
  }
  case object Float extends NumberType(FloatType, Dtype.F32) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.floats(target, rounding))(_.toFloatArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getFloat(ordinal)))
  }
  case object Double extends NumberType(DoubleType, Dtype.F64) {
    protected def convert(target: Dtype, rounding: Rounding): Encode =
      via(Encoders.doubles(target, rounding))(_.toDoubleArray())
    def single(row: SpecializedGetters, ordinal: scala.Int): ArrayData =
      UnsafeArrayData.fromPrimitiveArray(Array(row.getDouble(ordinal)))
  }

  private val all: Seq[NumberType] = Seq(Boolean, Byte, Short, Int, Long, Float, Double)

  /** None for a type that tensors cannot store. */
  def of(dataType: DataType): Option[NumberType] = all.find(_.sparkType == dataType)

  private def via[A](encoder: Encoder[A])(elements: ArrayData => A): Encode =
    (values, out) => encoder.encode(elements(values), out)

  private[safetensors] val IsLittleEndian = ByteOrder.nativeOrder == ByteOrder.LITTLE_ENDIAN

  /** The index of the first null, or -1. */
  def indexOfNull(values: ArrayData): Int = values match {
    case unsafe: UnsafeArrayData if !hasNullBits(unsafe) => -1
    case _ => (0 until values.numElements()).indexWhere(values.isNullAt)
  }

  // An UnsafeArrayData begins with the element count, followed by one null bit per element in whole words.
  private def hasNullBits(values: UnsafeArrayData): Boolean =
    BitSetMethods.anySet(values.getBaseObject, values.getBaseOffset + 8, (values.numElements() + 63L) / 64)
}

/** Copies elements whose bytes in the row equal those in the tensor. */
private final class CopyElements(size: Int, converting: NumberType.Encode) extends NumberType.Encode {

  override def apply(values: ArrayData, out: ByteBuffer): Unit = values match {
    case unsafe: UnsafeArrayData =>
      unsafe.getBaseObject match {
        case row: Array[Byte] =>
          val count = unsafe.numElements()
          val from =
            unsafe.getBaseOffset - Platform.BYTE_ARRAY_OFFSET + UnsafeArrayData.calculateHeaderPortionInBytes(
              count)
          out.put(row, from.toInt, count * size)
          ()
        case _ => converting(values, out)
      }
    case _ => converting(values, out)
  }
}
