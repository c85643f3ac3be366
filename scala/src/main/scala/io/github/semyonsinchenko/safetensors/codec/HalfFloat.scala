package io.github.semyonsinchenko.safetensors.codec

import java.lang.Double.doubleToRawLongBits
import java.lang.Float.intBitsToFloat

/**
 * A 16-bit float.
 *
 * @param mantissaBits the number of bits after the implicit one
 * @param minExponent  the exponent of the smallest normal number, as a power of two
 */
private[codec] final class HalfFloat(mantissaBits: Int, minExponent: Int) extends Serializable {
  import HalfFloat._

  private val rounding = new MagnitudeRounding(mantissaBits, minExponent)
  private val infinity = 0x7fff >>> mantissaBits << mantissaBits
  private val quietBit = 1 << (mantissaBits - 1)
  private val payload  = (1 << mantissaBits) - 1

  /** The number of bits of a float's mantissa that do not fit. */
  def floatShift: Int = FloatMantissaBits - mantissaBits

  /** The difference of the exponents' biases, in shifted bits. */
  def floatRebias: Int = (minExponent + FloatBias - 1) << FloatMantissaBits

  /** The bits of the smallest float for which shifting is correct. For a format with a float's exponents this is zero. */
  def floatLowest: Int = if (floatRebias == 0) 0 else floatRebias + (1 << FloatMantissaBits)

  /** The bits of the smallest float that becomes infinite. */
  def floatOverflow(nearest: Boolean): Int =
    (infinity << floatShift) + floatRebias - (if (nearest) 1 << (floatShift - 1) else 0)

  /**
   * The bits of the number after one rounding, or [[Overflow]] if a finite number would become infinite. A NaN keeps its
   * sign and the payload bits that fit.
   */
  def round(value: Double, nearest: Boolean): Int = {
    val bits      = doubleToRawLongBits(value)
    val sign      = (bits >>> 48).toInt & 0x8000
    val magnitude = bits & Long.MaxValue
    if (magnitude < DoubleInfinity) {
      val rounded = rounding.round(magnitude, nearest)
      if (rounded < infinity) sign | rounded else Overflow
    } else if (magnitude == DoubleInfinity) sign | infinity
    else sign | infinity | quietBit | ((magnitude >>> (DoubleMantissaBits - mantissaBits)).toInt & payload)
  }
}

private[codec] object HalfFloat {
  val F16  = new HalfFloat(mantissaBits = 10, minExponent = -14)
  val BF16 = new HalfFloat(mantissaBits = 7, minExponent = -126)

  final val Overflow = -1

  private final val FloatMantissaBits  = 23
  private final val FloatBias          = 127
  private final val DoubleMantissaBits = 52
  private final val DoubleInfinity     = 0x7ffL << 52

  /** The exact value of F16 bits. Java has this since version 20. */
  def f16ToFloat(bits: Int): Float = {
    val sign      = (bits & 0x8000) << 16
    val magnitude = bits & 0x7fff
    // As a float, the bits are too small by a factor of 2^112, subnormals too. Infinity and NaN keep the top exponent.
    if (magnitude < 0x7c00) intBitsToFloat(sign | (magnitude << 13)) * TwoTo112
    else intBitsToFloat(sign | 0x7f800000 | (magnitude << 13))
  }

  def bf16ToFloat(bits: Int): Float = intBitsToFloat(bits << 16)

  private final val TwoTo112 = 5.192296858534828e33f
}
