package io.github.semyonsinchenko.safetensors.read

import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.dataset.{DataFile, KeyBucket, ShardFacts}
import io.github.semyonsinchenko.safetensors.read.rows.FilePart

class BucketPartitionTest extends AnyFunSuite {

  private def part(name: String, bucket: Int, first: String, last: String) =
    FilePart(DataFile.at(name, 10).copy(shard = Some(ShardFacts(8, None, 1, Nil,
        Some(KeyBucket.of(4, bucket, first, last))))))

  private def names(partition: BucketPartition) = partition.parts.map(_.file.name)

  test("a partition for each bucket that has files, with the files in the order of their keys") {
    val found =
      BucketPartition.all(Seq(part("a", 2, "m", "z"), part("b", 0, "a", "b"), part("c", 2, "a", "l")))
    assert(found.map(partition => partition.bucket -> names(partition)) == Seq(0 -> Seq("b"),
      2 -> Seq("c", "a")))
    assert(found.forall(_.isSorted))
  }

  test("files whose keys overlap are not sorted together") {
    val found = BucketPartition.all(Seq(part("a", 1, "a", "m"), part("b", 1, "l", "z"))).head
    assert(!found.isSorted)
  }

  test("files without recorded keys are not sorted, unless there is one") {
    val long = "x" * 1001
    assert(BucketPartition.all(Seq(part("a", 1, "a", long))).head.isSorted)
    assert(!BucketPartition.all(Seq(part("a", 1, "a", "b"), part("b", 1, "c", long))).head.isSorted)
  }

  test("keys are compared as UTF-8 bytes") {
    val found = BucketPartition.all(Seq(part("a", 1, "\ud83d\ude00", "\ud83d\ude01"),
      part("b", 1, "\uff00", "\uff01"))).head
    assert(names(found) == Seq("b", "a") && found.isSorted)
  }
}
