package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Chooses the decoder for a dtype. */
object Decoders {

  /** The dtypes whose elements are numbers: all but C64 and those smaller than a byte. */
  val sources: Vector[Dtype] =
    Encoders.targets ++ Vector(F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ)

  /** None if the dtype is not one of [[sources]]. */
  def of(dtype: Dtype): Option[Decoder] = decoders.get(dtype)

  private val decoders: Map[Dtype, Decoder] = sources.map(dtype => dtype -> make(dtype)).toMap

  private def make(dtype: Dtype): Decoder = dtype match {
    case F32  => DecodeF32
    case F16  => DecodeF16
    case BF16 => DecodeBF16
    case I16  => DecodeI16
    case U16  => DecodeU16
    case I32  => DecodeI32
    case U32  => DecodeU32
    case F64  => DecodeF64
    case I64  => DecodeI64
    case U64  => DecodeU64
    case byte => new DecodeByte(ByteTables(byte))
  }
}
