package io.github.semyonsinchenko.safetensors.read

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class RowMemoryTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  test("what is reserved in a batch does not overlap") {
    forAll(Gen.listOf(Gen.listOf(Gen.choose(0, 400000)))) { batches =>
      val memory = new RowMemory
      batches.foreach { sizes =>
        memory.reset()
        val reserved = sizes.zipWithIndex.map { case (size, i) =>
          val (array, place) = memory.reserve(size)
          java.util.Arrays.fill(array, place, place + size, i.toByte)
          (array, place, size)
        }
        reserved.zipWithIndex.foreach { case ((array, place, size), i) =>
          assert(array.slice(place, place + size).forall(_ == i.toByte))
        }
      }
    }
  }

  test("a batch uses the memory of the one before, and not for ever that of the largest") {
    val memory   = new RowMemory
    val (one, _) = memory.reserve(100)
    memory.reset()
    assert(memory.reserve(100)._1 eq one)
    val (large, _) = memory.reserve(10 << 20)
    memory.reset()
    assert(memory.reserve(10 << 20)._1 eq large)
    memory.reset()
    memory.reserve(100)
    memory.reset()
    assert(memory.reserve(10 << 20)._1 ne large)
  }
}
