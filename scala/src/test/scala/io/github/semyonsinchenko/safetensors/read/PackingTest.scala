package io.github.semyonsinchenko.safetensors.read

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.dataset.DataFile
import io.github.semyonsinchenko.safetensors.read.rows.FilePart

class PackingTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def packed(maxBytes: Long, openBytes: Long, cores: Int)(lengths: Long*): Seq[Seq[Long]] =
    Packing.of(lengths.zipWithIndex.map { case (length, i) => FilePart(DataFile(s"f$i", length)) }, maxBytes,
      openBytes,
      cores)
      .map(_.map(_.file.length))

  test("small files that follow each other share a partition") {
    assert(packed(maxBytes = 100, openBytes = 1, cores = 1)(30, 30, 30, 30, 5) == Seq(Seq(30, 30, 30),
      Seq(30, 5)))
  }

  test("a file larger than a partition has one of its own") {
    assert(packed(maxBytes = 100, openBytes = 1, cores = 1)(500, 10, 10, 500) == Seq(Seq(500), Seq(10, 10),
      Seq(500)))
  }

  test("there is work for every core") {
    assert(packed(maxBytes = 1000, openBytes = 0, cores = 2)(10, 10, 10, 10) == Seq(Seq(10, 10), Seq(10, 10)))
  }

  test("to open a file counts as bytes") {
    assert(packed(maxBytes = 100, openBytes = 50, cores = 1)(0, 0, 0) == Seq(Seq(0, 0, 0)))
    assert(packed(maxBytes = 100, openBytes = 60, cores = 1)(1, 1, 1) == Seq(Seq(1, 1), Seq(1)))
  }

  test("no files are no partitions") {
    assert(packed(maxBytes = 100, openBytes = 1, cores = 2)() == Nil)
  }

  test("every file is in one partition, in order, and no partition is empty") {
    forAll(Gen.listOf(Gen.choose(0L, 1000L)), Gen.choose(1L, 2000L), Gen.choose(0L, 100L), Gen.choose(1, 8)) {
      (lengths, maxBytes, openBytes, cores) =>
        val partitions = packed(maxBytes, openBytes, cores)(lengths: _*)
        assert(partitions.flatten == lengths)
        assert(partitions.forall(_.nonEmpty))
    }
  }
}
