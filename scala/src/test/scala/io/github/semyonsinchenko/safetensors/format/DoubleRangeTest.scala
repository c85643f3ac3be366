package io.github.semyonsinchenko.safetensors.format

import org.scalatest.funsuite.AnyFunSuite

/** The fuzz puts many more numbers to the official library. */
class DoubleRangeTest extends AnyFunSuite {

  private def within(number: String): Unit =
    test(s"within: ${number.take(40)}")(assert(DoubleRange.holds(number)))
  private def beyond(number: String): Unit =
    test(s"beyond: ${number.take(40)}")(assert(!DoubleRange.holds(number)))

  within("0")
  within("1e308")
  within("1.7976931348623157e308")
  within("0.000000000000000000001e325")
  within("0e400")
  within("0.0E+99999999999")
  within("1e-99999999999")
  within("1" + "0" * 308)
  within("0." + "0" * 400 + "1e600")
  within("123456789012345678901234567890.5e270")

  beyond("1e309")
  beyond("1e99999999999")
  beyond("10e308")
  beyond("1" + "0" * 309)
  beyond("0." + "0" * 400 + "1e710")
  // Exact arithmetic rounds it to the greatest double; the library multiplies by 1e292, which is rounded itself.
  beyond("1.7976931348623158e308")
}
