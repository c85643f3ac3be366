package io.github.semyonsinchenko.safetensors.format

/**
 * Which numbers the official library's parser finds too large for a double.
 *
 * It gathers as many digits as fit an unsigned 64-bit number, and multiplies them by a power of ten. Both steps round, so that
 * a number close to the greatest double may be too large for it, and be none by exact arithmetic.
 */
private[format] object DoubleRange {

  private val MaxExponent = 308

  /** The powers of ten that are doubles. */
  private val powers: Array[Double] = Array.tabulate(MaxExponent + 1)(n => s"1e$n".toDouble)

  /** @param number a number as JSON has them, without its sign */
  def holds(number: String): Boolean = {
    val (digits, exponent) = number.span(c => c != 'e' && c != 'E')
    val (whole, fraction)  = digits.span(_ != '.')
    val gathered           = leading(whole, 0L)
    val rest               = whole.length - gathered.count
    val all                = leading(fraction.drop(1), gathered.value)
    val power              = exponentOf(exponent.drop(1)) + rest - all.count
    all.value == 0 || power <= 0 || power <= MaxExponent && !(double(all.value) * powers(
      power.toInt)).isInfinite
  }

  private final case class Leading(value: Long, count: Int)

  /** The digits that still fit behind those that make `start`. */
  private def leading(digits: String, start: Long): Leading = {
    var value = start
    var count = 0
    while (count < digits.length && fits(value, digits(count) - '0')) {
      value = value * 10 + (digits(count) - '0')
      count += 1
    }
    Leading(value, count)
  }

  private def fits(value: Long, digit: Int): Boolean =
    java.lang.Long.compareUnsigned(value, java.lang.Long.divideUnsigned(-1L - digit, 10)) <= 0

  private def double(value: Long): Double = java.lang.Long.toUnsignedString(value).toDouble

  /** An exponent beyond 32 bits is all the same: no header has so many digits that they could make up for it. */
  private def exponentOf(text: String): Long = {
    val digits = text.stripPrefix("+").stripPrefix("-").dropWhile(_ == '0')
    val size   = if (digits.length > 10) Int.MaxValue.toLong else digits.toLongOption.getOrElse(0L)
    if (text.startsWith("-")) -size else size
  }
}
