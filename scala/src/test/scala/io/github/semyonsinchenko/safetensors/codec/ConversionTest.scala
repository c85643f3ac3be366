package io.github.semyonsinchenko.safetensors.codec

import java.nio.{ByteBuffer, ByteOrder}

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.format.Dtype._

class ConversionTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private val pairs = Gen.oneOf(for (from <- Conversion.sources; to <- Seq(F32, F64, I64)) yield from -> to)

  /** The numbers, as the conversion makes them in the place of the elements. */
  private def convert(bytes: Array[Byte], from: Dtype, to: Dtype): ByteBuffer = {
    val count = bytes.length * 8 / from.bits
    val room  = count * math.max(from.bits, to.bits) / 8
    val begin = 3
    val array = new Array[Byte](begin + room + 2)
    val at    = begin + room - bytes.length
    System.arraycopy(bytes, 0, array, at, bytes.length)
    Conversion.of(from, to).foreach(_(array, at, begin, count))
    ByteBuffer.wrap(array, begin, room).slice().order(ByteOrder.nativeOrder)
  }

  test("numbers are those of the decoders, made in the place of the elements") {
    forAll(pairs, Gen.listOfN(40, Gen.choose(Byte.MinValue, Byte.MaxValue))) { case ((from, to), list) =>
      val bytes   = list.toArray
      val decoder = Decoders.of(from).get
      def made    = convert(bytes, from, to)
      to match {
        case F32 =>
          val found = decoder.floats(bytes).map(_ => 0f)
          made.asFloatBuffer.get(found)
          assert(found.map(java.lang.Float.floatToIntBits).toSeq ==
            decoder.floats(bytes).map(java.lang.Float.floatToIntBits).toSeq)
        case F64 =>
          val found = decoder.doubles(bytes).map(_ => 0d)
          made.asDoubleBuffer.get(found)
          assert(found.map(java.lang.Double.doubleToLongBits).toSeq ==
            decoder.doubles(bytes).map(java.lang.Double.doubleToLongBits).toSeq)
        case _ =>
          val exact = decoder.doubles(bytes).forall(value => value.isWhole && value.abs < 1e15)
          if (exact) {
            val found = decoder.longs(bytes)
            made.asLongBuffer.get(found)
            assert(found.toSeq == decoder.longs(bytes).toSeq)
          }
      }
    }
  }

  test("a number that the type cannot hold is an error with its place") {
    val cases = Seq[(Dtype, Dtype, Array[Byte], String)](
      (I16, I8, Array(1, 0, -128, 0), "128"),
      (F32, I32, Array(0, 0, 0, 0, 0, 0, 0, 63), "0.5"),
      (U8, BOOL, Array(1, 2), "2"),
      (U64, I64, Array.fill(8)(0.toByte) ++ Array.fill(8)(-1.toByte), "18446744073709551615")
    )
    for ((from, to, bytes, value) <- cases) {
      val error = intercept[UnencodableValueException](convert(bytes, from, to))
      assert((error.value, error.index) == ((value, 1)))
    }
  }

  test("narrower numbers, and booleans of any byte") {
    assert(convert(Array(1, 0, -2, -1), I16, I8).get(1) == -2)
    assert(convert(Array(0, 7, 1), BOOL, BOOL).array.slice(3, 6).toSeq == Seq(0, 1, 1))
    assert(Conversion.of(F32, F32).isEmpty && Conversion.of(I64, I64).isEmpty)
  }
}
