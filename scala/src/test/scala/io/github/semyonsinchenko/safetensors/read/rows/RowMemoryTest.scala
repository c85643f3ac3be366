package io.github.semyonsinchenko.safetensors.read.rows

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.format.ByteCopy

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

  test("memory of more than a large batch is not kept") {
    val memory = new RowMemory
    memory.reserve(RowMemory.LargeBytes.toInt + 1)
    val large = memory.chunk
    memory.reset()
    memory.reserve(100)
    // A failed assertion on the arrays themselves prints them.
    val isKept = memory.chunk eq large
    assert(!isKept)
  }

  test("a batch does not read what an aborted one lacked") {
    val memory = new RowMemory
    memory.reserve(8)
    memory.lacks(ByteCopy(0, 8, memory.chunk, 0))
    memory.reset()
    assert(memory.lackingBytes == 0)
    memory.fill(fail("nothing is lacking"))
  }
}
