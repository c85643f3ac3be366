package io.github.semyonsinchenko.safetensors.codec

import Codec._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

class DecoderTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def byte(dtype: Dtype, bits: Int): Float = decoder(dtype).floats(Array(bits.toByte)).head

  test("the 8-bit floats stand for the numbers of their definitions") {
    val values = Seq(
      F8_E5M2 -> Seq(
        0x00 -> 0f,
        0x80 -> -0f,
        0x01 -> 1.52587890625e-5f,
        0x3c -> 1f,
        0x7b -> 57344f,
        0x7c -> Float.PositiveInfinity,
        0xfc -> Float.NegativeInfinity,
        0x7d -> Float.NaN,
        0xff -> Float.NaN
      ),
      F8_E4M3 -> Seq(0x80 -> -0f, 0x01 -> 0.001953125f, 0x38 -> 1f, 0x7e -> 448f, 0xfe -> -448f,
        0x7f -> Float.NaN, 0xff -> Float.NaN),
      F8_E8M0 -> Seq(0x00 -> math.pow(2, -127).toFloat, 0x7f -> 1f, 0x80 -> 2f,
        0xfe -> math.pow(2, 127).toFloat, 0xff -> Float.NaN),
      F8_E4M3FNUZ -> Seq(0x00 -> 0f, 0x01 -> 0.0009765625f, 0x40 -> 1f, 0x7f -> 240f, 0xff -> -240f,
        0x80 -> Float.NaN),
      F8_E5M2FNUZ -> Seq(0x00 -> 0f, 0x01 -> 7.62939453125e-6f, 0x40 -> 1f, 0x7f -> 57344f, 0xff -> -57344f,
        0x80 -> Float.NaN)
    )
    for ((dtype, pairs) <- values; (bits, value) <- pairs)
      assert(java.lang.Float.compare(byte(dtype, bits), value) == 0, s"$dtype ${bits.toHexString}")
  }

  test("BOOL is decoded to its byte") {
    assert(decoder(BOOL).longs(Array[Byte](0, 1, 7)).toSeq == Seq(0L, 1L, 7L))
  }

  test("dtypes that are no single numbers have no decoder") {
    for (dtype <- Dtype.all)
      assert(Decoders.of(dtype).isEmpty == Set[Dtype](C64, F4, F6_E2M3, F6_E3M2).contains(dtype), dtype)
  }

  test("integers come back as they were, as longs") {
    for (dtype <- Seq(I8, I16, I32, I64)) {
      val min = -1L << (dtype.bits - 1)
      assert(decoder(dtype).longs(longs(dtype, min, -1L, ~min)).toSeq == Seq(min, -1L, ~min), dtype)
    }
    for (dtype <- Seq(U8, U16, U32)) {
      val max = (1L << dtype.bits) - 1
      assert(decoder(dtype).longs(longs(dtype, 0L, max)).toSeq == Seq(0L, max), dtype)
    }
    assert(decoder(U64).longs(longs(U64, Long.MaxValue)).toSeq == Seq(Long.MaxValue))
  }

  test("64-bit integers become floats and doubles in one rounding") {
    forAll(Gen.oneOf(Gen.long, Gen.choose(0, 62).map(n => (1L << n) + (1L << (n / 2)) + 1))) { bits =>
      val bytes    = longs(I64, bits)
      val unsigned = new java.math.BigDecimal(java.lang.Long.toUnsignedString(bits))
      assert(decoder(I64).floats(bytes).head == bits.toFloat)
      assert(decoder(I64).doubles(bytes).head == bits.toDouble)
      assert(decoder(U64).floats(bytes).head == unsigned.floatValue)
      assert(decoder(U64).doubles(bytes).head == unsigned.doubleValue)
    }
  }

  test("F64 comes back as doubles as it was, and as floats to the nearest") {
    val bytes = doubles(F64, 0.1, 1e300, -0.0)
    assert(decoder(F64).doubles(bytes).map(_.toString).toSeq == Seq("0.1", "1.0E300", "-0.0"))
    assert(decoder(F64).floats(bytes).map(_.toString).toSeq == Seq("0.1", "Infinity", "-0.0"))
  }

  test("a number that no long holds is refused with its place") {
    def message(dtype: Dtype, bytes: Array[Byte]) =
      intercept[UnencodableValueException](decoder(dtype).longs(bytes)).getMessage
    val range = "it holds whole numbers from -9223372036854775808 to 9223372036854775807"
    assert(message(U64,
      longs(I64, 0L, -1L)) == s"I64 cannot hold 18446744073709551615, the element at index 1: $range")
    assert(message(F16, floats(F16, Float.NaN)) == s"I64 cannot hold NaN, the element at index 0: $range")
    assert(message(F64, doubles(F64, 1e19)) == s"I64 cannot hold 1.0E19, the element at index 0: $range")
    assert(decoder(F32).longs(floats(F32, -1.9f)).toSeq == Seq(-1L))
  }
}
