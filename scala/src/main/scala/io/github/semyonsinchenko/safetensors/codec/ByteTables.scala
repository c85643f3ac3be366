package io.github.semyonsinchenko.safetensors.codec

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

/** The values of the 256 bytes of an 8-bit dtype. */
private[codec] object ByteTables {

  def apply(dtype: Dtype): Array[Float] = Array.tabulate(256)(value(dtype, _))

  private def value(dtype: Dtype, byte: Int): Float = dtype match {
    case I8          => byte.toByte.toFloat
    case F8_E5M2     => HalfFloat.f16ToFloat(byte << 8)
    case F8_E4M3     => if ((byte & 0x7f) == 0x7f) Float.NaN else small(byte, mantissaBits = 3, bias = 7)
    case F8_E4M3FNUZ => if (byte == 0x80) Float.NaN else small(byte, mantissaBits = 3, bias = 8)
    case F8_E5M2FNUZ => if (byte == 0x80) Float.NaN else small(byte, mantissaBits = 2, bias = 16)
    case F8_E8M0     => if (byte == 0xff) Float.NaN else math.pow(2, byte - 127).toFloat
    case _           => byte.toFloat // U8 and BOOL. The official library accepts any byte as BOOL
  }

  /** A float without infinities: their bit patterns are normal numbers. */
  private def small(byte: Int, mantissaBits: Int, bias: Int): Float = {
    val sign        = if (byte < 0x80) 1 else -1
    val exponent    = (byte & 0x7f) >>> mantissaBits
    val fraction    = byte & ((1 << mantissaBits) - 1)
    val implicitOne = if (exponent == 0) 0 else 1 << mantissaBits
    (sign.toDouble * (implicitOne + fraction) * math.pow(2,
      math.max(exponent, 1) - bias - mantissaBits)).toFloat
  }
}
