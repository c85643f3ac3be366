package io.github.semyonsinchenko.safetensors.types

import org.apache.spark.sql.catalyst.expressions.{Literal, Murmur3Hash, Pmod}
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class KeyBucketsTest extends AnyFunSuite {

  test("a bucket is that of Spark's hash partitioning") {
    val keys = Seq("", "a", "abc", "abcd", "abcde", "k12345678", "\u00e9\u4e2d", "\ud83d\ude00" * 9)
    for (key <- keys; count <- Seq(1, 2, 16, 1000)) {
      val hash = Pmod(Murmur3Hash(Seq(Literal(key)), 42), Literal(count)).eval()
      assert(KeyBuckets.bucket(count, UTF8String.fromString(key)) == hash, s"$key in $count")
    }
  }

  // Other implementations of the format compute the same.
  test("buckets of some keys") {
    val found =
      Seq("", "a", "abc", "k12345678").map(key => KeyBuckets.bucket(1000, UTF8String.fromString(key)))
    assert(found == Seq(372, 170, 556, 802))
  }
}
