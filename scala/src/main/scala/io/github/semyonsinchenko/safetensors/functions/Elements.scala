package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType, LongType}

import io.github.semyonsinchenko.safetensors.codec.Decoder

/** What a tensor's elements are decoded to, and the function that does so. */
sealed abstract class Elements(val function: String, val dataType: DataType)
    extends Product with Serializable {

  def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData
}

object Elements {

  case object Floats extends Elements("st_to_array", FloatType) {
    def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.floats(bytes))
  }

  case object Doubles extends Elements("st_to_array_double", DoubleType) {
    def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.doubles(bytes))
  }

  case object Longs extends Elements("st_to_array_long", LongType) {
    def decode(decoder: Decoder, bytes: Array[Byte]): UnsafeArrayData =
      UnsafeArrayData.fromPrimitiveArray(decoder.longs(bytes))
  }

  val all: Seq[Elements] = Seq(Floats, Doubles, Longs)
}
