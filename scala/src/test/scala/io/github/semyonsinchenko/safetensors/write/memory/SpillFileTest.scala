package io.github.semyonsinchenko.safetensors.write.memory

import java.nio.ByteBuffer
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.SparkSession
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class SpillFileTest extends AnyFunSuite with BeforeAndAfterAll {
  import SpillFileTest._

  private lazy val spark = SparkSession.builder().master("local[1]").config(Map(
      "spark.ui.enabled"            -> "false",
      "spark.io.encryption.enabled" -> "true")).getOrCreate()

  override def afterAll(): Unit = spark.stop()

  test("spill files are encrypted with `spark.io.encryption.enabled`, and come out as they went in") {
    assume(Files.exists(Paths.get("/proc/self/fd")), "only Linux shows deleted files")
    val (size, isPlain, same) = spark.sparkContext.parallelize(Seq(1), 1).map(_ => spilled()).collect().head
    assert(size >= (Rows - 4L) * Row.length && !isPlain && same)
  }
}

private object SpillFileTest {
  val Row: Array[Byte] = Array.tabulate(1 << 20)(i => (i * 31).toByte)
  val Rows             = 16

  /** How long the spill file is, whether it has a row in plain, and whether the same bytes come out. */
  def spilled(): (Long, Boolean, Boolean) = {
    val pages   = new Pages(0, 1 << 20)
    val payload = new Payload(pages, () => SpillFile.create())
    for (_ <- 1 to Rows) payload.append(ByteBuffer.wrap(Row))
    val contents = openFiles("temp_local_").map(file => new String(Files.readAllBytes(file), "ISO-8859-1"))
    val plain    = new String(Row.take(64), "ISO-8859-1")
    var position = 0
    var same     = true
    payload.drain { bytes =>
      while (bytes.hasRemaining) {
        same &&= bytes.get() == Row(position % Row.length)
        position += 1
      }
    }
    payload.close()
    (contents.map(_.length.toLong).sum, contents.exists(_.contains(plain)),
      same && position == Rows * Row.length)
  }

  /** The files that this process has open under this name, though they are deleted. */
  private def openFiles(name: String): Seq[Path] =
    Files.list(Paths.get("/proc/self/fd")).iterator.asScala.toSeq.filter(fd =>
      Files.isSymbolicLink(fd) && Files.readSymbolicLink(fd).toString.contains(name))
}
