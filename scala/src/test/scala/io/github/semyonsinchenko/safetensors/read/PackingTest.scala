package io.github.semyonsinchenko.safetensors.read

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, Located, ShardFacts}
import io.github.semyonsinchenko.safetensors.format.{Dtype, TensorInfo}
import io.github.semyonsinchenko.safetensors.read.rows.{FilePart, Span}

class PackingTest extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def packed(maxBytes: Long, openBytes: Long, cores: Int)(lengths: Long*): Seq[Seq[Long]] =
    Packing(maxBytes, openBytes, cores).whole(files(lengths)).map(_.map(_.file.length)).toSeq

  private def files(lengths: Seq[Long]): Seq[FilePart] =
    lengths.zipWithIndex.map { case (length, i) => FilePart(DataFile.at(s"f$i", length)) }

  private def split(maxBytes: Long)(lengths: Long*): Seq[Seq[(String, Span)]] =
    Packing(maxBytes, openBytes = 0, cores = 1).split(files(lengths)).map(
      _.map(part => part.file.path -> part.span)).toSeq

  private val end = Long.MaxValue

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

  test("a file larger than a partition is split evenly") {
    assert(split(maxBytes = 100)(250) ==
      Seq(Seq("f0" -> Span(0, 84)), Seq("f0" -> Span(84, 168)), Seq("f0" -> Span(168, end))))
    assert(split(maxBytes = 100)(100) == Seq(Seq("f0" -> Span.All)))
  }

  test("the last split of a file may share a partition with the next file") {
    assert(split(maxBytes = 100)(120, 40) ==
      Seq(Seq("f0" -> Span(0, 60)), Seq("f0" -> Span(60, end), "f1" -> Span.All)))
  }

  test("tensors that an index names are shared out by their own sizes") {
    val tensors = Vector(60L, 60L, 500L, 0L, 10L).zipWithIndex.map { case (size, i) =>
      TensorInfo(s"t$i", Dtype.U8, Vector(size), i * 1000L, i * 1000L + size)
    }
    val part = FilePart(DataFile.at("f", 1 << 20), Located.At(tensors))
    assert(Packing(100, 0, 1).split(Seq(part)).map(_.map(_.located)).toSeq ==
      Seq(Vector(tensors(0)), Vector(tensors(1)), Vector(tensors(2)), tensors.drop(3)).map(some =>
        Seq(Located.At(some))))
  }

  test("a split is large against the header, which each split reads") {
    val shard = ShardFacts(headerBytes = 30, samples = None, tensors = 9, columns = Nil)
    val parts = Seq(FilePart(DataFile.at("f", 480).copy(shard = Some(shard))), FilePart(DataFile.at("g", 40)))
    def spans(cores: Int) = Packing(100, 0, cores).split(parts).map(_.map(_.span)).toSeq
    // More cores than files.
    assert(spans(cores = 3) == Seq(Seq(Span(0, 240)), Seq(Span(240, end)), Seq(Span.All)))
    // Each core has a file.
    assert(spans(cores = 2) == Seq(Seq(Span.All), Seq(Span.All)))
  }

  test("each row of a split file is in one of its spans, in order") {
    forAll(Gen.choose(1L, 1L << 40), Gen.choose(1, 50), Gen.choose(0L, 1L << 35)) { (length, pieces, count) =>
      val spans = Span.split(length, (length - 1) / pieces + 1).toSeq
      assert(spans.head.begin == 0 && spans.last.end == end)
      assert(spans.zip(spans.tail).forall { case (one, next) => one.end == next.begin })
      val rows = spans.map(_.rows(count, length))
      assert(rows.head._1 == 0 && rows.last._2 == count)
      assert(rows.zip(rows.tail).forall { case (one, next) => one._2 == next._1 && one._1 <= one._2 })
    }
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
