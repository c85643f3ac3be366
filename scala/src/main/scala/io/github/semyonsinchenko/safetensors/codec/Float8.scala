package io.github.semyonsinchenko.safetensors.codec

import java.lang.Double.doubleToRawLongBits

/**
 * An 8-bit float, into which numbers are rounded as PyTorch does: to nearest, ties to even, and at most to `largest`.
 *
 * @param mantissaBits the number of bits after the implicit one
 * @param minExponent  the exponent of the smallest normal number, as a power of two
 * @param largest      the bits of the largest number, or of infinity if there is one
 */
private[codec] final class Float8(mantissaBits: Int, minExponent: Int, largest: Int) extends Serializable {
  import Float8._

  private val rounding = new MagnitudeRounding(mantissaBits, minExponent)

  def round(value: Double): Byte = {
    val bits      = doubleToRawLongBits(value)
    val sign      = (bits >>> 56).toInt & 0x80
    val magnitude = bits & Long.MaxValue
    val rounded =
      if (magnitude > DoubleInfinity) NaN else math.min(rounding.round(magnitude, nearest = true), largest)
    (sign | rounded).toByte
  }
}

private[codec] object Float8 {

  /** Without infinity. The largest number is 448. */
  val E4M3 = new Float8(mantissaBits = 3, minExponent = -6, largest = 0x7e)

  val E5M2 = new Float8(mantissaBits = 2, minExponent = -14, largest = 0x7c)

  private final val NaN            = 0x7f
  private final val DoubleInfinity = 0x7ffL << 52
}
