package io.github.semyonsinchenko.safetensors.read.rows

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
          val place = memory.reserve(size)
          val array = memory.chunk
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
    val memory = new RowMemory
    memory.reserve(100)
    val one = memory.chunk
    memory.reset()
    memory.reserve(100)
    assert(memory.chunk eq one)
    memory.reserve(10 << 20)
    val large = memory.chunk
    memory.reset()
    memory.reserve(10 << 20)
    assert(memory.chunk eq large)
    memory.reset()
    memory.reserve(100)
    memory.reset()
    memory.reserve(10 << 20)
    assert(memory.chunk ne large)
  }
}
