package io.github.semyonsinchenko.safetensors.read

import java.nio.file.{Files, Path}

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.format.Bytes
import io.github.semyonsinchenko.safetensors.{CountingFileSystem, Requests, TempDir}

/** Which bytes of which files a query asks for. */
class RequestsTest extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
    .config(s"spark.hadoop.${CountingFileSystem.setting._1}", CountingFileSystem.setting._2).getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private val Header = 0L -> 65536
  private val Size   = 200000

  /** The place of the `index`th tensor. */
  private def tensor(file: Path, index: Int): (Long, Int) =
    Files.size(file) - (5 - index) * Size -> Size

  /** Two files `x` and `y` of five tensors, `x0` to `x4` and `y0` to `y4`, of which none comes along with the header. */
  private def inDataset(body: Path => Unit): Unit = TempDir { directory =>
    for (name <- Seq("x", "y")) {
      val tensors =
        (0 until 5).map(i => s""""$name$i":["U8",[$Size],[${i * Size},${(i + 1) * Size}]]""").mkString(",")
      val padding = " " * 65536
      Files.write(directory.resolve(s"$name.safetensors"), Bytes.file(s"{$tensors}$padding", data = 5 * Size))
    }
    body(directory)
  }

  /** What the rows of `query` took of the two files, beside the one request that reads the header to its end. */
  private def asked(directory: Path, layout: String, schema: String = "")(
      query: DataFrame => DataFrame): Map[String, Seq[(Long, Int)]] = {
    val reader = spark.read.format("safetensors").option("layout", layout)
    val df =
      query((if (schema.isEmpty) reader else reader.schema(schema)).load(s"counted://$directory"))
    val (_, requests) = Requests.during(df.collect())
    val files         = requests.filter(_._1.endsWith(".safetensors"))
    files.values.foreach(file => assert(file.opens == 1 && file.ranges.take(1) == Seq(Header)))
    files.map { case (name, file) =>
      val end = Files.size(directory.resolve(name)) - 5 * Size
      assert(file.ranges(1) == (65536L -> (end - 65536).toInt))
      name.stripSuffix(".safetensors") -> file.ranges.drop(2)
    }
  }

  private val none = Map("x" -> Nil, "y" -> Nil)

  private def wide(names: String*): String =
    names.map(name => s"$name struct<data: binary, shape: array<int>, dtype: string>").mkString(", ")

  private def all(layout: String): String =
    if (layout == "wide") wide((for (file <- "xy"; i <- 0 until 5) yield s"$file$i"): _*) else ""

  test("wide: shapes and dtypes are in headers") {
    inDataset(directory =>
      assert(asked(directory, "wide", wide("x1", "y1"))(_.select("x1.shape", "y1.dtype")) == none))
  }

  test("long: keys, shapes and dtypes are in headers") {
    inDataset(directory =>
      assert(asked(directory, "long")(_.select("tensor_key", "tensor.shape", "tensor.dtype")) == none))
  }

  test("a count takes no tensor's bytes") {
    inDataset { directory =>
      assert(asked(directory, "long")(_.groupBy().count()).values.forall(_.isEmpty))
      assert(asked(directory, "wide", wide("x1"))(_.groupBy().count()).values.forall(_.isEmpty))
    }
  }

  test("wide: one tensor of several takes its bytes alone") {
    inDataset { directory =>
      assert(asked(directory, "wide", wide("x0", "x1", "x4"))(_.select("x1")) ==
        Map("x" -> Seq(tensor(directory.resolve("x.safetensors"), 1)), "y" -> Nil))
    }
  }

  test("long: a condition on the key takes the bytes of the tensors that meet it") {
    inDataset { directory =>
      val file = directory.resolve("y.safetensors")
      assert(asked(directory, "long")(_.where("tensor_key = 'y3'")) == Map("x" -> Nil,
        "y"                                                                    -> Seq(tensor(file, 3))))
      val several = asked(directory, "long")(_.where("tensor_key in ('y0', 'y2', 'z')"))
      assert(several("x") == Nil && several("y").toSet == Set(tensor(file, 0), tensor(file, 2)))
    }
  }

  test("tensors that lie together take one request") {
    inDataset { directory =>
      for (layout <- Seq("wide", "long"); (name, requests) <- asked(directory, layout, all(layout))(identity))
        assert(requests == Seq(tensor(directory.resolve(s"$name.safetensors"), 0)._1 -> 5 * Size))
    }
  }

  test(
    "long: a key is looked up in the index: one file is opened, and of it the tensor's bytes are asked for alone") {
    TempDir { parent =>
      val directory = parent.resolve("dataset")
      spark.range(0, 40, 1, 4).selectExpr("concat('k', id) k", "array(id, id) v").write.format("safetensors")
        .option("name_col", "k").option("generate_index", "true").mode("append").save(directory.toString)
      val df = spark.read.format("safetensors").option("layout", "long").load(s"counted://$directory")
      val (rows, requests) = Requests.during(df.where("tensor_key = 'k23'").collect())
      assert(rows.length == 1)
      val files = requests.filter(_._1.endsWith(".safetensors")).values.toSeq
      assert(files.map(_.opens) == Seq(1) && files.head.ranges.map(_._2) == Seq(16))
    }
  }
}
