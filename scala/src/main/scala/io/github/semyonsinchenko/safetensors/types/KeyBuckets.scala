package io.github.semyonsinchenko.safetensors.types

import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/** Divides keys into buckets as Spark's hash partitioning does, so that a repartitioned task has the keys of one bucket. */
object KeyBuckets {

  // Of Spark's `hash`.
  private val Seed = 42

  /** The bucket of a key, from 0 on: `pmod(hash(key), buckets)` in Spark SQL. */
  def bucket(buckets: Int, key: UTF8String): Int =
    Math.floorMod(
      Murmur3_x86_32.hashUnsafeBytes(key.getBaseObject, key.getBaseOffset, key.numBytes, Seed),
      buckets)
}
