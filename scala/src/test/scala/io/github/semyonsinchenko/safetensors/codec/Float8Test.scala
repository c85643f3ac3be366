package io.github.semyonsinchenko.safetensors.codec

import Codec._
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.format.Dtype.{F8_E4M3, F8_E5M2}

class Float8Test extends AnyFunSuite {

  private val formats = Seq(F8_E4M3 -> 0x7e, F8_E5M2 -> 0x7b)

  test("every number of F8 is encoded as itself, and NaN as one NaN of its sign") {
    for ((dtype, largest) <- formats; pattern <- 0 to 0xff) {
      val value    = decoder(dtype).floats(Array(pattern.toByte)).head
      val expected = if (value.isNaN) pattern | 0x7f else pattern
      // A NaN keeps no sign on its way through a float table.
      if (!value.isNaN) {
        assert((floats(dtype, value).head & 0xff) == expected, s"$dtype $pattern")
        assert((doubles(dtype, value.toDouble).head & 0xff) == expected, s"$dtype $pattern")
      } else assert((floats(dtype, value).head & 0x7f) == 0x7f, s"$dtype $pattern")
    }
  }

  test("a number between two goes to the nearer one, and from the middle to the even one") {
    for ((dtype, largest) <- formats; low <- 0 until largest; sign <- Seq(1, -1)) {
      def value(pattern: Int)     = decoder(dtype).doubles(Array(pattern.toByte)).head
      def encoded(number: Double) = doubles(dtype, sign * number).head & 0x7f
      val (below, above)          = (value(low), value(low + 1))
      val middle                  = (below + above) / 2
      assert(encoded(Math.nextDown(middle)) == low && encoded(Math.nextUp(middle)) == low + 1)
      assert(encoded(middle) == low + low % 2, s"$dtype $low")
    }
  }

  test("what is beyond the largest number is that, or infinite where there is infinity") {
    val beyond = Seq(449f, 480f, 1e9f, Float.MaxValue, Float.PositiveInfinity)
    assert(floats(F8_E4M3, beyond: _*).toSeq == Seq.fill(5)(0x7e.toByte))
    assert(floats(F8_E4M3, beyond.map(-_): _*).toSeq == Seq.fill(5)(0xfe.toByte))
    assert(floats(F8_E5M2, 61439f, 61440f, 65536f, 1e9f, Float.PositiveInfinity).toSeq ==
      Seq[Byte](0x7b, 0x7c, 0x7c, 0x7c, 0x7c))
    assert(longs(F8_E4M3, Long.MaxValue, Long.MinValue).toSeq == Seq(0x7e.toByte, 0xfe.toByte))
    assert(doubles(F8_E5M2, -1e300).toSeq == Seq(0xfc.toByte))
  }

  test("numbers too small are zeros of their sign") {
    for ((dtype, _) <- formats)
      assert(doubles(dtype, 1e-30, -1e-30, -0.0, Double.MinPositiveValue).toSeq == Seq(0, 0x80.toByte,
        0x80.toByte, 0))
  }
}
