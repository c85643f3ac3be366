package io.github.semyonsinchenko.safetensors.write.memory

import org.apache.spark.SparkConf
import org.scalatest.funsuite.AnyFunSuite

class MemoryBoundTest extends AnyFunSuite {

  private val Mega = 1L << 20

  private def bound(heapMb: Long, cores: Int, settings: (String, String)*): Long =
    new MemoryBound(new SparkConf(false).setAll(settings), heapMb * Mega, cores).perTask

  private val yarn = "spark.master" -> "yarn"

  test("all tasks of an executor take at most half of its memory overhead") {
    assert(bound(8192, 4, yarn) * 4 <= 820 * Mega / 2)
    assert(bound(8192, 4, yarn, "spark.executor.memoryOverhead" -> "2g") == 256 * Mega)
    assert(bound(8192, 4, yarn, "spark.executor.memoryOverheadFactor" -> "0.2") * 4 <= 1639 * Mega / 2)
    assert(bound(1024, 2, yarn) == 96 * Mega)
  }

  test("no more than a quarter of the heap, to which the JVM limits direct memory") {
    assert(bound(512, 1, yarn, "spark.executor.memoryOverhead" -> "4g") == 128 * Mega)
    assert(bound(2048, 4, "spark.master" -> "local[4]") == 128 * Mega)
  }

  test("a task has enough for some pages, and no more than a shard of the default size") {
    assert(bound(256, 16, yarn) == 16 * Mega)
    assert(bound(65536, 1, "spark.master" -> "local") == 320 * Mega)
  }
}
