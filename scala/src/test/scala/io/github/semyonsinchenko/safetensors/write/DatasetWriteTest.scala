package io.github.semyonsinchenko.safetensors.write

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.types.{FloatType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{Manifest, ShardRecord}
import io.github.semyonsinchenko.safetensors.storage.StorageException
import io.github.semyonsinchenko.safetensors.write.commit.{Existing, ShardsWritten, Target}
import io.github.semyonsinchenko.safetensors.write.plan.{WriteOptions, WritePlan}

class DatasetWriteTest extends AnyFunSuite {
  private val conf = new Configuration

  private val plan = WritePlan.of(
    WriteOptions.of(new CaseInsensitiveStringMap(Map("batch_size" -> "1").asJava)),
    new StructType().add("x", FloatType))

  test("shards that are not where the driver looks are an error, and no manifest names them") {
    TempDir { directory =>
      val path  = new Path(directory.toUri)
      val spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
      val written = ShardsWritten(Seq(ShardRecord("part-00000-0.safetensors", 1, 10, 8, 0)), Nil, Nil)
      Using.resource(spark) { _ =>
        val write = new DatasetWrite(plan, Target(path, Existing.Keep, indexed = false, buckets = None), conf)
        write.createBatchWriterFactory(null)
        val error = intercept[StorageException](write.commit(Array(written.toMessage)))
        assert(error.getMessage.startsWith(
            s"The write to $path failed: Shard part-00000-0.safetensors was written, but is not in $path as the driver"))
        write.abort(Array(written.toMessage))
        assert(Manifest.read(path, conf).isEmpty)
      }
    }
  }

  test("a dataset that came while another was to be created there stays, and the late one is refused") {
    TempDir { directory =>
      val path  = new Path(directory.toUri)
      val spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
      val written = Array(ShardsWritten(Nil, Nil, Nil).toMessage)
      Using.resource(spark) { _ =>
        val early, late =
          new DatasetWrite(plan, Target(path, Existing.Refuse, indexed = false, buckets = None), conf)
        Seq(early, late).foreach(_.createBatchWriterFactory(null))
        early.commit(written)
        val before = Manifest.read(path, conf)
        val error  = intercept[InvalidRequestException](late.commit(written))
        assert(error.getMessage.startsWith(s"$path is a dataset already, and was to be created."))
        late.abort(written)
        assert(before.isDefined && Manifest.read(path, conf) == before)
      }
    }
  }
}
