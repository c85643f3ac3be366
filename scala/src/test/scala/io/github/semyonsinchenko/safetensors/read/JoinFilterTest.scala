package io.github.semyonsinchenko.safetensors.read

import java.nio.file.Files

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.expressions.{Expression, Expressions}
import org.apache.spark.sql.connector.read.{Batch, PartitionReaderFactory, SupportsRuntimeV2Filtering}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.functions.broadcast
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.format.Bytes

/** Filters that Spark finds on the other side of a join, and adds to a scan when the query runs. */
class JoinFilterTest extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark =
    SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  /** The scan of the keys `a`, `b` and `c`, all in one file. */
  private def withScan(body: SupportsRuntimeV2Filtering => Unit): Unit = TempDir { directory =>
    val tensors = Seq("a", "b", "c").map(name => s""""$name":["U8",[0],[0,0]]""")
    Files.write(directory.resolve("one.safetensors"), Bytes.file(tensors.mkString("{", ",", "}"), data = 0))
    val df   = spark.read.format("safetensors").option("layout", "long").load(directory.toString)
    val plan = df.where("tensor_key > 'A'").select("tensor_key").queryExecution.optimizedPlan
    body(plan.collectFirst { case relation: DataSourceV2ScanRelation => relation.scan }.get
        .asInstanceOf[SupportsRuntimeV2Filtering])
  }

  private def isIn(keys: String*): Array[Predicate] = {
    val literals = keys.map(key => Expressions.literal(UTF8String.fromString(key)))
    Array(new Predicate("IN", (Expressions.column("tensor_key") +: literals).toArray[Expression]))
  }

  private def keys(batch: Batch, readers: PartitionReaderFactory): Seq[String] =
    batch.planInputPartitions().toSeq.flatMap { partition =>
      val reader = readers.createReader(partition)
      try Iterator.continually(reader).takeWhile(_.next()).map(_.get.getUTF8String(0).toString).toVector
      finally reader.close()
    }

  test("each batch of a scan has the filter that was set before it, and no other") {
    withScan { scan =>
      val first   = scan.toBatch
      val readers = first.createReaderFactory()
      scan.filter(isIn("a"))
      val a = scan.toBatch
      scan.filter(isIn("b"))
      val b   = scan.toBatch
      val all = scan.toBatch
      assert(keys(a, readers) == Seq("a"))
      assert(keys(b, readers) == Seq("b"))
      assert(keys(first, readers) == Seq("a", "b", "c"))
      assert(keys(all, all.createReaderFactory()) == Seq("a", "b", "c"))
    }
  }

  test("a join whose tasks take the filter finds its rows") {
    TempDir { directory =>
      val tensors = Seq("k0" -> 0, "k1" -> 1).map { case (key, size) =>
        s""""$key":["U8",[$size],[0,$size]]"""
      }
      Files.write(directory.resolve("one.safetensors"), Bytes.file(tensors.mkString("{", ",", "}"), data = 1))
      val small  = spark.range(1, 9, 1, 1).where("id < 4").selectExpr("concat('k', id) tensor_key")
      val df     = spark.read.format("safetensors").option("layout", "long").load(directory.toString)
      val joined = df.join(broadcast(small), "tensor_key").select("tensor_key")
      assert(joined.queryExecution.executedPlan.toString.contains("dynamicpruning"))
      assert(joined.collect().map(_.getString(0)).toSeq == Seq("k1"))
    }
  }

  test("the description does not grow with the keys of a filter") {
    withScan { scan =>
      assert(scan.description().contains("tensor_key > 'A'"))
      scan.filter(isIn((0 until 1000).map(i => s"key$i"): _*))
      scan.toBatch.planInputPartitions()
      assert(!scan.description().contains("key17"))
    }
  }
}
