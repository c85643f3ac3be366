package io.github.semyonsinchenko.safetensors.index

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class KeysTest extends AnyFunSuite {

  private val names = Seq("", "a", "a\u0000", "aa", "ab", "b", "ключ", "\uffff", "😀")

  private def text(name: String): UTF8String   = UTF8String.fromString(name)
  private def bytes(name: String): Array[Byte] = name.getBytes(UTF_8)

  private def contained(keys: Keys): Seq[String] = names.filter(name => keys.contain(bytes(name)))

  private val samples: Seq[(Keys, String => Boolean)] =
    (Keys.all, (_: String) => true) +:
      names.flatMap { name =>
        def compared(holds: Int => Boolean)(other: String) = holds(text(other).compareTo(text(name)))
        Seq[(Keys, String => Boolean)](
          Keys.of(Iterator(text(name), text("ab"))) -> Set(name, "ab"),
          Keys.startingWith(text(name))             -> (_.startsWith(name)),
          Keys.from(text(name))                     -> compared(_ >= 0),
          Keys.after(text(name))                    -> compared(_ > 0),
          Keys.before(text(name))                   -> compared(_ < 0),
          Keys.upTo(text(name))                     -> compared(_ <= 0)
        )
      }

  test("keys contain what the comparison of UTF-8 bytes says") {
    for ((keys, expected) <- samples) assert(contained(keys) == names.filter(expected))
  }

  test("intersections and unions contain what both or either contain") {
    for ((one, inOne) <- samples; (other, inOther) <- samples) {
      assert(contained(one.intersect(other)) == names.filter(name => inOne(name) && inOther(name)))
      assert(contained(one.union(other)) == names.filter(name => inOne(name) || inOther(name)))
    }
  }

  test("keys overlap an interval if and only if one of them is in it") {
    val keys = Keys.of(Iterator("b", "d").map(text)).union(Keys.startingWith(text("k")))
    for ((least, greatest, expected) <-
        Seq(("a", "az", false), ("a", "b", true), ("b", "c", true), ("ba", "c", false),
          ("c", "z", true), ("kz", "kz", true), ("l", "z", false)))
      assert(keys.overlap(bytes(least), bytes(greatest)) == expected, (least, greatest))
  }

  test("the keys between two are all there") {
    val keys = Keys.of(Iterator("a", "b", "d").map(text))
    assert(Seq("b", "d").forall(name => keys.between(bytes("b"), bytes("e")).contain(bytes(name))))
    assert(keys.between(bytes("b1"), bytes("c")).overlap(bytes("b1"), bytes("c")) == false)
    assert(keys.between(bytes("e"), bytes("f")).isEmpty)
  }

  test("a prefix of bytes that no key has ends nowhere") {
    val prefix = UTF8String.fromBytes(Array(-1, -1).map(_.toByte))
    assert(Keys.startingWith(prefix).contain(Array(-1, -1, 5).map(_.toByte)))
    assert(contained(Keys.startingWith(prefix)).isEmpty)
  }
}
