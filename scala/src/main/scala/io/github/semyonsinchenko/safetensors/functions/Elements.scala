package io.github.semyonsinchenko.safetensors.functions

import java.nio.ByteBuffer
import java.util

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

import io.github.semyonsinchenko.safetensors.codec.Decoder
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.NumberType

/** The type that a tensor's elements are decoded to, and its function. */
sealed abstract class Elements(val function: String, number: NumberType)
    extends Product with Serializable {

  def dataType: DataType = number.sparkType

  /** Decodes the bytes with the decoder of their dtype. */
  final def array(dtype: Dtype, decoder: Decoder, bytes: ByteBuffer): UnsafeArrayData =
    if (dtype == number.dtype && NumberType.IsLittleEndian) copy(bytes) else decode(decoder, arrayOf(bytes))

  protected def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData

  private def copy(bytes: ByteBuffer): UnsafeArrayData = {
    val size  = dataType.defaultSize
    val start = Platform.BYTE_ARRAY_OFFSET + bytes.arrayOffset + bytes.position()
    UnsafeArrayData.fromPrimitiveArray(bytes.array, start, bytes.remaining / size, size)
  }

  private def arrayOf(bytes: ByteBuffer): Array[Byte] =
    if (bytes.remaining == bytes.array.length) bytes.array
    else util.Arrays.copyOfRange(bytes.array, bytes.position(), bytes.limit())
}

object Elements {

  case object Floats extends Elements("st_to_array", NumberType.Float) {
    protected def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.floats(bytes))
  }

  case object Doubles extends Elements("st_to_array_double", NumberType.Double) {
    protected def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.doubles(bytes))
  }

  case object Longs extends Elements("st_to_array_long", NumberType.Long) {
    protected def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.longs(bytes))
  }

  val all: Seq[Elements] = Seq(Floats, Doubles, Longs)
}
