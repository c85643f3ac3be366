package io.github.semyonsinchenko.safetensors.codec

import java.math.{BigDecimal, RoundingMode}

/** Rounding to a 16-bit float as the textbook has it, in exact arithmetic. */
final class SlowHalf(mantissaBits: Int, minExponent: Int, maxExponent: Int) {

  private def power(exponent: Int): BigDecimal =
    if (exponent >= 0) new BigDecimal(2).pow(exponent)
    else BigDecimal.ONE.divide(new BigDecimal(2).pow(-exponent))

  /** The number after rounding; none where it is past the largest. */
  def round(exact: BigDecimal, rounding: Rounding): Option[Double] = {
    val exponent = (minExponent to maxExponent + 1).findLast(e => exact.abs.compareTo(power(e)) >= 0)
    val ulp      = power(exponent.getOrElse(minExponent) - mantissaBits)
    val mode     = if (rounding == Rounding.Truncate) RoundingMode.DOWN else RoundingMode.HALF_EVEN
    val rounded  = exact.divide(ulp).setScale(0, mode).multiply(ulp)
    if (rounded.abs.compareTo(power(maxExponent + 1)) >= 0) None else Some(rounded.doubleValue)
  }
}

object SlowHalf {
  val F16  = new SlowHalf(mantissaBits = 10, minExponent = -14, maxExponent = 15)
  val BF16 = new SlowHalf(mantissaBits = 7, minExponent = -126, maxExponent = 127)
}
