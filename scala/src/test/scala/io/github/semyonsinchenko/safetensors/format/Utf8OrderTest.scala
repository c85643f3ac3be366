package io.github.semyonsinchenko.safetensors.format

import java.nio.charset.StandardCharsets.UTF_8
import java.util

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class Utf8OrderTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  // Few characters of each length in UTF-8, so that strings often begin alike.
  private val text =
    Gen.listOf(Gen.oneOf("a", "b", "ä", "\ud7ff", "\ue000", "\uffff", "😀", "😁")).map(_.mkString)

  test("strings stand in the order of their UTF-8 bytes") {
    forAll(text, text) { (left, right) =>
      val bytes = util.Arrays.compareUnsigned(left.getBytes(UTF_8), right.getBytes(UTF_8))
      assert(Integer.signum(Utf8Order.compare(left, right)) == Integer.signum(bytes))
    }
  }
}
