package io.github.semyonsinchenko.safetensors.storage

import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.format.ByteRange

class ByteRunsTest extends AnyFunSuite {
  private val Gap = ByteRuns.MaxGap.toLong

  private def runs(maxBytes: Int)(ranges: (Long, Int)*): Vector[ByteRun] =
    ByteRuns.of(ranges.map { case (position, count) => ByteRange(position, count) }.toIndexedSeq, maxBytes)

  test("ranges that touch are one run, in whatever order they come") {
    assert(runs(100)(20L -> 10, 0L -> 10, 10L -> 10) == Vector(ByteRun(0, 30, Vector(1, 2, 0))))
  }

  test("a gap is read over if it is small") {
    assert(runs(1 << 20)(0L -> 10, (10 + Gap) -> 10).map(_.count) == Vector(20 + Gap))
    assert(runs(1 << 20)(0L -> 10, (11 + Gap) -> 10).map(_.count) == Vector(10, 10))
  }

  test("a run has no more bytes than are asked for, unless a range has") {
    assert(runs(25)(0L -> 10, 10L -> 10, 20L -> 10, 30L -> 40, 70L -> 1).map(run =>
      run.position -> run.count) ==
      Vector(0L -> 20, 20L -> 10, 30L -> 40, 70L -> 1))
  }

  test("ranges that overlap, or are the same, share a run") {
    assert(runs(100)(0L -> 30, 10L -> 5, 0L -> 30, 20L -> 20) ==
      Vector(ByteRun(0, 40, Vector(0, 2, 1, 3))))
  }

  test("a range without bytes is in no run") {
    assert(runs(100)(5L -> 0).isEmpty)
    assert(runs(100)(0L -> 5, 5L -> 0, 5L -> 5) == Vector(ByteRun(0, 10, Vector(0, 2))))
  }

  test("ranges of the greatest size do not overflow") {
    val most = Int.MaxValue - 8
    assert(runs(100)(0L -> most, most.toLong -> most).map(run => run.position -> run.count) ==
      Vector(0L -> most, most.toLong -> most))
  }

  test("runs are under way together up to a limit, and never two that overlap") {
    def waves(ranges: (Long, Int)*) =
      ByteRuns.waves(runs(10)(ranges: _*), 30).map(_.map(run => run.position -> run.count))
    val far = 10 * Gap
    assert(waves(0L -> 10, far -> 10, 2 * far -> 10, 3 * far -> 10) ==
      Vector(Vector(0L -> 10, far -> 10, 2 * far -> 10), Vector(3 * far -> 10)))
    assert(waves(0L -> 40, far -> 1) == Vector(Vector(0L -> 40), Vector(far -> 1)))
    assert(waves(0L -> 12, 11L -> 12) == Vector(Vector(0L -> 12), Vector(11L -> 12)))
    assert(waves() == Vector.empty)
  }
}
