package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Chooses the encoder for an array type and a dtype. */
object Encoders {

  /** The dtypes that numbers can be encoded as. */
  val targets: Vector[Dtype] =
    Vector(F16, F32, F64, BF16, U8, I8, U16, I16, U32, I32, U64, I64, BOOL, F8_E4M3, F8_E5M2)

  def booleans(dtype: Dtype, rounding: Rounding): Encoder[Array[Boolean]] =
    if (dtype == BOOL) BooleansToBool else new ThroughDouble(Widening.booleans, Sink(dtype, rounding))

  /** For signed bytes, as in Spark. */
  def bytes(dtype: Dtype, rounding: Rounding): Encoder[Array[Byte]] =
    if (dtype == I8) BytesToI8 else new ThroughDouble(Widening.bytes, Sink(dtype, rounding))

  def shorts(dtype: Dtype, rounding: Rounding): Encoder[Array[Short]] =
    if (dtype == I16) ShortsToI16 else new ThroughDouble(Widening.shorts, Sink(dtype, rounding))

  def ints(dtype: Dtype, rounding: Rounding): Encoder[Array[Int]] =
    if (dtype == I32) IntsToI32 else new ThroughDouble(Widening.ints, Sink(dtype, rounding))

  def longs(dtype: Dtype, rounding: Rounding): Encoder[Array[Long]] = dtype match {
    case I64 => LongsToI64
    case U64 => LongsToU64
    case F64 => new ThroughDouble(Widening.longsToNearest, Sink(dtype, rounding))
    case _   => new ThroughDouble(Widening.longsToOdd, Sink(dtype, rounding))
  }

  def floats(dtype: Dtype, rounding: Rounding): Encoder[Array[Float]] = dtype match {
    case F32  => FloatsToF32
    case F16  => new FloatsToHalf(F16, HalfFloat.F16, rounding)
    case BF16 => new FloatsToHalf(BF16, HalfFloat.BF16, rounding)
    case _    => new ThroughDouble(Widening.floats, Sink(dtype, rounding))
  }

  def doubles(dtype: Dtype, rounding: Rounding): Encoder[Array[Double]] =
    if (dtype == F64) DoublesToF64 else new ThroughDouble(Widening.doubles, Sink(dtype, rounding))
}
