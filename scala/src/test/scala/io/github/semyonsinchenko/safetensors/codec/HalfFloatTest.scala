package io.github.semyonsinchenko.safetensors.codec

import java.lang.Double.longBitsToDouble
import java.lang.Float.intBitsToFloat

import Codec._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype.{BF16, F16}

class HalfFloatTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 3000)

  private def float(rounding: Rounding, dtype: Dtype, value: Float): Int =
    bits(encode(Encoders.floats(dtype, rounding), Array(value)))

  private def double(rounding: Rounding, dtype: Dtype, value: Double): Int =
    bits(encode(Encoders.doubles(dtype, rounding), Array(value)))

  /** A signalling NaN comes back quiet; all else as it was. */
  private def quieted(pattern: Int, infinity: Int, quiet: Int): Int =
    if ((pattern & 0x7fff) > infinity) pattern | quiet else pattern

  for (rounding <- Rounding.all) {
    test(s"every bit pattern of F16 and BF16 round-trips with ${rounding.name}") {
      for {
        (dtype, infinity, quiet) <- Seq((F16, 0x7c00, 0x200), (BF16, 0x7f80, 0x40))
        pattern                  <- 0 to 0xffff
      } {
        val expected = quieted(pattern, infinity, quiet)
        assert(float(rounding, dtype, decoder(dtype).floats(le16(pattern)).head) == expected,
          s"$dtype $pattern")
        assert(double(rounding, dtype, decoder(dtype).doubles(le16(pattern)).head) == expected,
          s"$dtype $pattern")
      }
    }
  }

  test("F16 and BF16 are decoded to the numbers that they stand for") {
    val f16 =
      Map(0x3c00 -> 1.0, 0x0001 -> math.pow(2, -24), 0x03ff -> 1023 * math.pow(2, -24), 0x7bff -> 65504.0,
        0xfc00 -> Double.NegativeInfinity, 0x3555 -> 0.333251953125)
    for ((pattern, value) <- f16) assert(decoder(F16).doubles(le16(pattern)).head == value)
    val bf16 =
      Map(0x3f80 -> 1.0, 0x0001 -> math.pow(2, -133), 0x7f80 -> Double.PositiveInfinity, 0xc049 -> -3.140625)
    for ((pattern, value) <- bf16) assert(decoder(BF16).doubles(le16(pattern)).head == value)
  }

  private val finiteFloats: Gen[Float] = Gen.oneOf(
    Gen.choose(Int.MinValue, Int.MaxValue).map(intBitsToFloat),
    Gen.choose(-70000f, 70000f),
    Gen.choose(-1e-4f, 1e-4f),
    Gen.choose(-1e-7f, 1e-7f)
  ).suchThat(f => !f.isNaN && !f.isInfinite)

  private val finiteDoubles: Gen[Double] = Gen.oneOf(
    finiteFloats.map(_.toDouble),
    Gen.choose(Long.MinValue, Long.MaxValue).map(longBitsToDouble),
    Gen.choose(-70000.0, 70000.0),
    Gen.choose(-1e-4, 1e-4),
    Gen.choose(-1e-38, 1e-38),
    // Next to the middle of two 16-bit floats, where rounding twice goes wrong.
    for (half <- Gen.choose(0, 0x7bff); up <- Gen.oneOf(-1, 0, 1)) yield {
      val middle = (decoder(F16).doubles(le16(half)).head + decoder(F16).doubles(le16(half + 1)).head) / 2
      if (up > 0) Math.nextUp(middle) else if (up < 0) Math.nextDown(middle) else middle
    }
  ).suchThat(d => !d.isNaN && !d.isInfinite)

  for ((dtype, slow) <- Seq(F16 -> SlowHalf.F16, BF16 -> SlowHalf.BF16); rounding <- Rounding.all) {

    def sameAsModel[A](encoder: Encoder[A], values: A, exact: java.math.BigDecimal): Unit =
      slow.round(exact, rounding) match {
        case Some(expected) => assert(decoder(dtype).doubles(encode(encoder, values)).head == expected)
        case None           => assertThrows[UnencodableValueException](encode(encoder, values))
      }

    test(s"floats become $dtype with ${rounding.name} as in exact arithmetic") {
      forAll(finiteFloats)(f =>
        sameAsModel(Encoders.floats(dtype, rounding), Array(f), new java.math.BigDecimal(f.toDouble)))
    }

    test(s"doubles become $dtype with ${rounding.name} in one rounding") {
      forAll(finiteDoubles)(d =>
        sameAsModel(Encoders.doubles(dtype, rounding), Array(d), new java.math.BigDecimal(d)))
    }

    test(s"longs become $dtype with ${rounding.name} in one rounding") {
      // Few bits set, so that many lie next to the middle of two numbers.
      val longs = for {
        a <- Gen.choose(0, 63); b <- Gen.choose(0, 63); c <- Gen.choose(-2, 2)
      } yield ((1L << a) ^ (1L << b)) + c
      forAll(Gen.oneOf(longs, Gen.long))(l =>
        sameAsModel(Encoders.longs(dtype, rounding), Array(l), new java.math.BigDecimal(l)))
    }
  }

  test("a zero keeps its sign, and what is too small becomes one") {
    for (rounding <- Rounding.all) {
      assert(float(rounding, F16, -0.0f) == 0x8000)
      assert(float(rounding, BF16, -0.0f) == 0x8000)
      assert(double(rounding, BF16, -Double.MinPositiveValue) == 0x8000)
      assert(double(rounding, F16, Float.MinPositiveValue.toDouble) == 0)
    }
  }

  test("F16 subnormals are kept, not flushed to zero") {
    for (rounding <- Rounding.all) assert(float(rounding, F16, 1023 * math.pow(2, -24).toFloat) == 0x03ff)
    // Half of the smallest is a tie, and zero the even one; anything above goes up.
    assert(float(Rounding.NearestEven, F16, math.pow(2, -25).toFloat) == 0)
    assert(float(Rounding.NearestEven, F16, Math.nextUp(math.pow(2, -25).toFloat)) == 1)
    assert(float(Rounding.Truncate, F16, Math.nextDown(math.pow(2, -24).toFloat)) == 0)
  }

  test("F16 ends at 65504: what truncates or rounds to it passes") {
    assert(float(Rounding.Truncate, F16, 65535.996f) == 0x7bff)
    assert(float(Rounding.NearestEven, F16, 65519.996f) == 0x7bff)
    for ((rounding, value) <- Seq(Rounding.Truncate -> 65536f, Rounding.NearestEven -> 65520f)) {
      val e = intercept[UnencodableValueException](float(rounding, F16, -value))
      assert(e.getMessage ==
        s"F16 cannot hold ${-value}, the element at index 0: it holds finite values up to 65504 either way")
    }
  }

  test("BF16 refuses a float that rounds to infinity, and truncates it to the largest") {
    assert(float(Rounding.Truncate, BF16, Float.MaxValue) == 0x7f7f)
    val e = intercept[UnencodableValueException](float(Rounding.NearestEven, BF16, Float.MaxValue))
    assert(e.getMessage.startsWith("BF16 cannot hold 3.4028235E38, the element at index 0"))
  }

  test("infinities stay infinities") {
    for (rounding <- Rounding.all; (dtype, infinity) <- Seq(F16 -> 0x7c00, BF16 -> 0x7f80)) {
      assert(float(rounding, dtype, Float.PositiveInfinity) == infinity)
      assert(float(rounding, dtype, Float.NegativeInfinity) == (infinity | 0x8000))
      assert(double(rounding, dtype, Double.NegativeInfinity) == (infinity | 0x8000))
    }
  }

  test("a NaN whose payload sits in the low bits stays a NaN, with its sign") {
    for (rounding <- Rounding.all) {
      assert(float(rounding, BF16, intBitsToFloat(0x7f800001)) == 0x7fc0)
      assert(float(rounding, BF16, intBitsToFloat(0xffffffff)) == 0xffff)
      assert(float(rounding, F16, intBitsToFloat(0xff800001)) == 0xfe00)
      assert(double(rounding, F16, longBitsToDouble(0x7ff0000000000001L)) == 0x7e00)
      assert(double(rounding, BF16, longBitsToDouble(0xfff0000000000001L)) == 0xffc0)
    }
  }
}
