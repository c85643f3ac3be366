package io.github.semyonsinchenko.safetensors.write.commit

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.types.{FloatType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.dataset.ShardRecord
import io.github.semyonsinchenko.safetensors.write.plan.{WriteOptions, WritePlan}

class BatchSizeAdviceTest extends AnyFunSuite {

  private def advice(options: Map[String, String], shards: (Long, Long)*): Option[String] = {
    val schema = new StructType().add("id", "string").add("x", FloatType)
    val plan =
      WritePlan.of(WriteOptions.of(new CaseInsensitiveStringMap((options + ("columns" -> "x")).asJava)),
        schema)
    BatchSizeAdvice.of(plan, shards.map { case (rows, bytes) => ShardRecord("", rows, bytes, 8, 0) })
  }

  private val small = Seq.fill(400)((100L, 1000000L)) :+ ((3L, 30000L))

  test("a batch whose shards are far under the target earns the batch size that would suit") {
    assert(advice(Map("batch_size" -> "100"), small: _*).contains(
        "Option `batch_size` is 100, which makes shards of 1.0 MB, far under the 300 MB of `target_shard_size_mb`: many small " +
          "files are slow to list and open. A `batch_size` of about 30000 or `auto` would suit."))
  }

  test("a lower target quiets it") {
    val fewer = Seq.fill(80)((100L, 6000000L))
    assert(advice(Map("batch_size" -> "100"), fewer: _*).nonEmpty)
    assert(advice(Map("batch_size" -> "100", "target_shard_size_mb" -> "50"), fewer: _*).isEmpty)
  }

  test("data that would not fill one shard, or not one batch in a task, earns none") {
    assert(advice(Map("batch_size" -> "100"), small.take(299): _*).isEmpty)
    assert(advice(Map("batch_size" -> "200"), small: _*).isEmpty)
  }

  test("key-value shards close by themselves") {
    assert(advice(Map("name_col" -> "id"), small: _*).isEmpty)
    assert(advice(Map("batch_size" -> "auto"), small: _*).isEmpty)
  }
}
