package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** Decodes the little-endian bytes of one dtype. The bytes are whole elements. */
abstract class Decoder extends Serializable {

  /** The numbers as floats: those that no float holds rounded to the nearest, large ones to infinity. */
  def floats(bytes: Array[Byte]): Array[Float]

  /** The numbers as doubles: exact but for integers past 2^53, which round to the nearest. */
  def doubles(bytes: Array[Byte]): Array[Double]

  /**
   * The numbers as longs; fractions are given up.
   *
   * @throws UnencodableValueException for a number that no long holds: NaN, or out of range
   */
  def longs(bytes: Array[Byte]): Array[Long]
}

object Decoder {

  /** The dtypes whose elements are numbers: not C64, nor those that are packed into less than a byte. */
  val sources: Vector[Dtype] =
    Encoder.targets ++ Vector(BOOL, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ)

  /** None where the dtype is not among [[sources]]. */
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
