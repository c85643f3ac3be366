package io.github.semyonsinchenko.safetensors.codec

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.nio.{ByteBuffer, ByteOrder}

import Codec._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

class EncoderTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private val integers = Vector(U8, I8, U16, I16, U32, I32, U64, I64)

  private def hex(bytes: Array[Byte]): String = bytes.map(b => f"$b%02x").mkString

  private def message(encode: => Any): String = intercept[UnencodableValueException](encode).getMessage

  /** The integer that the bytes stand for. */
  private def integer(dtype: Dtype, bytes: Array[Byte]): BigInt = {
    val bits = bytes.reverse
    if (dtype.name.startsWith("U")) BigInt(1, bits) else BigInt(bits)
  }

  test("numbers stand in little-endian bytes") {
    assert(hex(bytes(I8, 1, -2)) == "01fe")
    assert(hex(shorts(I16, 1, -2)) == "0100feff")
    assert(hex(ints(I32, 1, -2)) == "01000000feffffff")
    assert(hex(longs(I64, -2L)) == "feffffffffffffff")
    assert(hex(floats(F32, 1f)) == "0000803f")
    assert(hex(doubles(F64, 1.0)) == "000000000000f03f")
    assert(hex(longs(F64, 1L)) == "000000000000f03f")
    assert(hex(ints(F16, 1)) == "003c")
    assert(hex(floats(U64, 258f)) == "0201000000000000")
  }

  test("encoding begins at the buffer's position and advances it, on the heap and off it") {
    for {
      out <- Seq(ByteBuffer.allocate(20), ByteBuffer.allocateDirect(20)).map(_.order(ByteOrder.LITTLE_ENDIAN))
      dtype <- Encoders.targets if dtype != BOOL
    } {
      out.clear().position(3)
      Encoders.floats(dtype, Rounding.Truncate).encode(Array(1f, 2f), out)
      assert(out.position() == 3 + 2 * dtype.bits / 8)
      val written = new Array[Byte](2 * dtype.bits / 8)
      out.get(3, written)
      assert(decoder(dtype).floats(written).toSeq == Seq(1f, 2f), dtype)
    }
  }

  test("arrays longer than a run are encoded whole, and the index of a refused value counts from the start") {
    val values = Array.tabulate(5000)(i => (i % 256).toFloat)
    assert(decoder(U8).floats(floats(U8, values.toIndexedSeq: _*)).toSeq == values.toSeq)
    values(4321) = 256f
    val e = intercept[UnencodableValueException](floats(U8, values.toIndexedSeq: _*))
    assert((e.value, e.index, e.dtype) == (("256.0", 4321, U8)))
  }

  test("no numbers are no bytes") {
    for (dtype <- Encoders.targets) assert(floats(dtype).isEmpty && longs(dtype).isEmpty)
  }

  for (dtype <- integers) {
    val signedMin = -BigInt(2).pow(dtype.bits - 1)
    val unsigned  = dtype.name.startsWith("U")
    val min       = if (unsigned) BigInt(0) else signedMin
    val max       = if (unsigned) BigInt(2).pow(dtype.bits) - 1 else -signedMin - 1

    test(s"$dtype takes longs from its smallest to its largest and refuses the next") {
      for (value <- Seq(min - 1, min, max, max + 1) if value.isValidLong) {
        if (min <= value && value <= max) assert(integer(dtype, longs(dtype, value.toLong)) == value)
        else assert(message(longs(dtype, 0L, value.toLong)) ==
          s"$dtype cannot hold $value, the element at index 1: it holds whole numbers from $min to $max")
      }
    }

    test(s"$dtype takes bytes, shorts and ints that are in its range") {
      for (value <- Seq(-128, -1, 0, 127)) {
        val expected = if (min <= value && value <= max) Some(BigInt(value)) else None
        val results = Seq[() => Array[Byte]](
          () => bytes(dtype, value.toByte), () => shorts(dtype, value.toShort), () => ints(dtype, value))
        for (result <- results) expected match {
          case Some(number) => assert(integer(dtype, result()) == number)
          case None         => assert(message(result()).startsWith(s"$dtype cannot hold $value,"))
        }
      }
    }

    test(s"$dtype takes doubles without their fraction, and checks the range after") {
      val doublesAround = for {
        edge <- Seq(min, max + 1); step <- Seq(-1.5, -1.0, -0.5, 0.0, 0.5, 1.0)
      } yield edge.toDouble + step
      val any = Gen.oneOf(Gen.oneOf(doublesAround), Gen.choose(-1e20, 1e20), Gen.choose(-300.0, 300.0))
      forAll(any) { value =>
        val whole = BigDecimal(new java.math.BigDecimal(value)).toBigInt
        if (min <= whole && whole <= max) assert(integer(dtype, doubles(dtype, value)) == whole)
        else assert(message(doubles(dtype, value)).startsWith(s"$dtype cannot hold $value,"))
      }
    }

    test(s"$dtype refuses NaN and infinity") {
      for (value <- Seq(Float.NaN, Float.PositiveInfinity, Float.NegativeInfinity)) {
        assert(message(floats(dtype, 1f, value)).startsWith(
            s"$dtype cannot hold $value, the element at index 1:"))
        assert(message(doubles(dtype, value.toDouble)).startsWith(s"$dtype cannot hold $value,"))
      }
    }
  }

  test("a refused float is named as it was, not as the double it widens to") {
    assert(message(floats(U8, -1.1f)) ==
      "U8 cannot hold -1.1, the element at index 0: it holds whole numbers from 0 to 255")
  }

  test("longs round to the nearest F32 and F64 in one step") {
    forAll(Gen.oneOf(Gen.long, Gen.choose(0, 62).map(n => (1L << n) + (1L << (n / 2)) + 1))) { value =>
      assert(decoder(F32).floats(longs(F32, value)).head == value.toFloat)
      assert(decoder(F64).doubles(longs(F64, value)).head == value.toDouble)
    }
  }

  test("a double that no float reaches is refused, and infinity passes") {
    assert(decoder(F32).floats(doubles(F32, Double.NegativeInfinity, 0.1, -0.0)).map(_.toString).toSeq ==
      Seq("-Infinity", "0.1", "-0.0"))
    assert(decoder(F32).floats(doubles(F32, Double.NaN)).head.isNaN)
    assert(message(doubles(F32, 3.5e38)) ==
      "F32 cannot hold 3.5E38, the element at index 0: it holds finite values up to 3.4028235E38 either way")
  }

  test("a dtype that holds no numbers of ours is refused by name") {
    val e = intercept[IllegalArgumentException](Encoders.floats(C64, Rounding.Truncate))
    assert(e.getMessage.startsWith("Numbers cannot be encoded as C64, only as one of F16, F32,"))
  }

  test("encoders travel to executors") {
    for (dtype <- Encoders.targets if dtype != BOOL) {
      val stored = new ByteArrayOutputStream
      new ObjectOutputStream(stored).writeObject(Encoders.floats(dtype, Rounding.NearestEven))
      val read = new ObjectInputStream(new ByteArrayInputStream(stored.toByteArray)).readObject()
      val back = read.asInstanceOf[Encoder[Array[Float]]]
      assert(decoder(dtype).floats(encode(back, Array(2f))).head == 2f)
    }
  }
}
