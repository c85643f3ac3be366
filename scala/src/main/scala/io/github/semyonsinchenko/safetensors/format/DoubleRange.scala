package io.github.semyonsinchenko.safetensors.format

/**
 * Decides whether the official library's parser finds a number too large for a double.
 *
 * The parser collects the digits that fit an unsigned 64-bit number and multiplies them by a power of ten. Both steps round.
 * So it may refuse a number close to the largest double that exact arithmetic accepts.
 */
private[format] object DoubleRange {

  private val MaxExponent = 308

  /** The powers of ten that are doubles. */
  private val powers: Array[Double] = Array.tabulate(MaxExponent + 1)(n => s"1e$n".toDouble)

  /** @param number a JSON number without its sign */
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

  /** The number of digits that fit after those that make `start`. */
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

  /** Exponents beyond 32 bits are equivalent: no header has enough digits to compensate for one. */
  private def exponentOf(text: String): Long = {
    val digits = text.stripPrefix("+").stripPrefix("-").dropWhile(_ == '0')
    val size   = if (digits.length > 10) Int.MaxValue.toLong else digits.toLongOption.getOrElse(0L)
    if (text.startsWith("-")) -size else size
  }
}
