package io.github.semyonsinchenko.safetensors.codec

/**
 * Rounds doubles to the bits of a narrower float.
 *
 * @param mantissaBits the number of bits after the implicit one
 * @param minExponent  the exponent of the smallest normal number, as a power of two
 */
private[codec] final class MagnitudeRounding(mantissaBits: Int, minExponent: Int) extends Serializable {
  import MagnitudeRounding._

  private val shift       = DoubleMantissaBits - mantissaBits
  private val minBiased   = minExponent + DoubleBias
  private val rebias      = (minBiased - 1).toLong << DoubleMantissaBits
  private val smallNormal = minBiased.toLong << DoubleMantissaBits

  /**
   * The bits of the number after one rounding. Those of a number that is too large continue as if there were more exponents.
   *
   * @param magnitude the bits of a double without its sign, not those of NaN
   */
  def round(magnitude: Long, nearest: Boolean): Int =
    if (magnitude >= smallNormal) cut(magnitude - rebias, shift, nearest)
    else roundSubnormal(magnitude, nearest)

  /** A subnormal number loses one bit per step of the exponent. */
  private def roundSubnormal(magnitude: Long, nearest: Boolean): Int = {
    val exponent    = (magnitude >>> DoubleMantissaBits).toInt
    val significand = (magnitude & DoubleMantissa) | (1L << DoubleMantissaBits)
    // After 54 bits nothing is left, and Java takes shift distances modulo 64.
    cut(significand, math.min(shift + minBiased - exponent, 54), nearest)
  }

  /** Rounding up may carry into the exponent, which is then correct. */
  private def cut(magnitude: Long, bits: Int, nearest: Boolean): Int = {
    val up = if (nearest) (1L << (bits - 1)) - 1 + ((magnitude >>> bits) & 1) else 0L
    ((magnitude + up) >>> bits).toInt
  }
}

private object MagnitudeRounding {
  private final val DoubleMantissaBits = 52
  private final val DoubleBias         = 1023
  private final val DoubleMantissa     = (1L << 52) - 1
}
