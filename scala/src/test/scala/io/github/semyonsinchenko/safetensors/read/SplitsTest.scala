package io.github.semyonsinchenko.safetensors.read

import java.nio.file.{Files, Path}

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.format.Bytes

/** Files that are larger than a partition. */
class SplitsTest extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.files.maxPartitionBytes", "1000").config("spark.sql.files.openCostInBytes",
      "0").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private def read(layout: String, path: Path): DataFrame =
    spark.read.format("safetensors").option("layout", layout).option("inferSchema", "true").load(
      path.toString)

  /** One shard of `count` samples of 16 bytes, each the number of its row. */
  private def samples(count: Int, options: (String, String)*)(body: Path => Unit): Unit = TempDir { parent =>
    val path = parent.resolve("dataset")
    spark.range(0, count, 1, 1).selectExpr("array(id, id) x").write.format("safetensors")
      .options(options.toMap).mode("append").save(path.toString)
    body(path)
  }

  /** One file with tensors of these sizes. */
  private def tensors(sizes: Int*)(body: Path => Unit): Unit = TempDir { directory =>
    val ends   = sizes.scanLeft(0)(_ + _)
    val header = sizes.indices.map(i => s""""t$i":["U8",[${sizes(i)}],[${ends(i)},${ends(i + 1)}]]""")
    Files.write(directory.resolve("one.safetensors"),
      Bytes.file(header.mkString("{", ",", "}"), data = ends.last))
    body(directory)
  }

  private def ids(df: DataFrame): Seq[Long] =
    df.selectExpr("st_to_array_long(x)[0]").collect().map(_.getLong(0)).toSeq

  private def partitions(df: DataFrame): Int = df.rdd.getNumPartitions

  test("rows: a shard is several partitions, and its rows keep their order") {
    samples(200, "batch_size" -> "200") { path =>
      val df = read("rows", path)
      assert(partitions(df) == 4)
      assert(ids(df) == (0L until 200L))
      assert(df.count() == 200 && df.limit(130).count() == 130)
      assert(ids(df.limit(70)) == (0L until 70L))
      assert(df.rdd.mapPartitions(rows => Iterator(rows.size)).collect().forall(_ > 30))
    }
  }

  test("rows: padding is in no split") {
    samples(130, "batch_size" -> "200", "tail_strategy" -> "pad") { path =>
      assert(partitions(read("rows", path)) > 2)
      assert(ids(read("rows", path)) == (0L until 130L))
    }
  }

  test("long: a file is several partitions, and its tensors keep their order") {
    tensors(0, 700, 0, 700, 5000, 0, 10, 700, 0) { path =>
      val df = read("long", path)
      val rows = df.selectExpr("tensor_key", "length(tensor.data)").collect().map(row =>
        row.getString(0) -> row.getInt(1))
      assert(partitions(df) == 8)
      assert(rows.toSeq == Seq(0, 700, 0, 700, 5000, 0, 10, 700, 0).zipWithIndex.map { case (size, i) =>
        s"t$i" -> size
      })
      assert(df.count() == 9 && df.where("tensor_key > 't5'").count() == 3)
    }
  }

  test("long: tensors that an index names are several partitions") {
    TempDir { parent =>
      val path = parent.resolve("dataset")
      spark.range(0, 40, 1, 1).selectExpr("concat('k', id) k", "array_repeat(id, 20) v").write.format(
        "safetensors")
        .option("name_col", "k").option("generate_index", "true").mode("append").save(path.toString)
      val df =
        read("long", path).where("tensor_key like 'k1%' or tensor_key like 'k2%' or tensor_key like 'k3%'")
      assert(partitions(df) > 4)
      assert(df.selectExpr("st_to_array_long(tensor)[19]").collect().map(_.getLong(0)).sorted.toSeq ==
        (0L until 40L).filter(id => id.toString.head >= '1' && id.toString.head <= '3'))
    }
  }

  test("a query that reads only headers does not split files") {
    samples(200, "batch_size" -> "200")(path => assert(partitions(read("rows", path).select("x.shape")) == 1))
    tensors(700, 700, 700)(path =>
      assert(partitions(read("long", path).select("tensor_key", "tensor.dtype")) == 1))
  }

  test("wide: a file is one partition") {
    tensors(700, 700, 700) { path =>
      val df = read("wide", path)
      assert(
        partitions(df) == 1 && df.selectExpr("length(t2.data)").collect().map(_.getInt(0)).toSeq == Seq(700))
    }
  }
}
