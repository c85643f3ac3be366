package io.github.semyonsinchenko.safetensors.write

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Path => LocalPath}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, DataFrameWriter, Row, SparkSession}
import org.apache.spark.sql.functions.{col, udf}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import io.github.semyonsinchenko.safetensors.TempDir
import io.github.semyonsinchenko.safetensors.dataset.{DatasetFiles, Manifest}
import io.github.semyonsinchenko.safetensors.index.{Keys, TensorIndex}

/** Small datasets written through a [[FaultyFileSystem]], and what a reader sees of them by the plain one. */
abstract class FaultyWrites(master: String) extends AnyFunSuite with BeforeAndAfterAll with Eventually {

  implicit override val patienceConfig: PatienceConfig = PatienceConfig(Span(30, Seconds), Span(20, Millis))

  protected lazy val spark: SparkSession = SparkSession.builder().master(master)
    .config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()

  override def afterAll(): Unit = spark.stop()

  protected type Options = Map[String, String]
  protected val batch: Options    = Map("batch_size" -> "3")
  protected val keyValue: Options = Map("name_col" -> "id")
  protected val indexed: Options  = keyValue + ("generate_index" -> "true")

  /** The numbers, in two partitions: twelve make four batches of three. Each goes through `check` in its task. */
  protected def rows(numbers: Range, check: Int => Unit = _ => ()): DataFrame = {
    val checked = udf { (id: Long) => check(id.toInt); id }.asNondeterministic()
    spark.range(numbers.start.toLong, numbers.end.toLong, 1, 2).select(checked(col("id")).as("id"))
      .selectExpr("id", "array(cast(id as float), 0.5F) x")
  }

  protected def writer(df: DataFrame, mode: String, options: Options): DataFrameWriter[Row] = {
    val columns = if (hasKeys(options)) df else df.select("x")
    columns.write.format("safetensors").options(options).mode(mode)
  }

  /** Writes through the faulty file system. */
  protected def write(df: DataFrame, directory: LocalPath, mode: String, options: Options): Unit =
    writer(df, mode, options).option("fs.faulty.impl", classOf[FaultyFileSystem].getName).save(
      s"faulty://$directory")

  /** The numbers that a reader of the dataset sees, in its order. */
  protected def seen(directory: LocalPath, options: Options): Seq[Int] =
    if (hasKeys(options)) shards(directory).flatMap(numbersOf) else numbersOf(directory.toString)

  private def hasKeys(options: Options): Boolean = options.contains("name_col")

  private def numbersOf(path: String): Seq[Int] = {
    val files   = spark.read.format("safetensors").option("inferSchema", "true").load(path).collect().toSeq
    val tensors = files.flatMap(file => (0 until file.length).map(file.getStruct))
    tensors.flatMap { tensor =>
      val bytes   = ByteBuffer.wrap(tensor.getAs[Array[Byte]]("data")).order(ByteOrder.LITTLE_ENDIAN)
      val samples = Seq.fill(bytes.remaining / 8)((bytes.getFloat, bytes.getFloat))
      assert(samples.forall(_._2 == 0.5f))
      samples.map(_._1.toInt)
    }
  }

  /** The shards that a reader of the dataset finds. */
  protected def shards(directory: LocalPath): Seq[String] =
    DatasetFiles.of(new Path(directory.toUri), new Configuration).map(_.path)

  /** The keys in the dataset's index, if it has one that is not out of date. */
  protected def keys(directory: LocalPath): Option[Seq[Int]] = {
    val path  = new Path(directory.toUri)
    val conf  = new Configuration
    val parts = Manifest.read(path, conf).toSeq.flatMap(_.indexParts).map(TensorIndex.open(path, _, conf))
    Option.when(parts.nonEmpty && parts.forall(_.isDefined))(
      parts.flatten.flatMap(Using.resource(_)(_.entries(Keys.all).map(_.key.toInt).toVector)))
  }

  /** All files below a directory, but for the manifest and what it names. */
  protected def leftovers(directory: LocalPath): Seq[String] = {
    val named = Manifest.read(new Path(directory.toUri), new Configuration).toSeq.flatMap(_.files)
    val files = Files.walk(directory).iterator.asScala.filter(Files.isRegularFile(_)).toSeq
    files.map(directory.relativize(_).toString).filterNot(
      (Manifest.FileName +: named).contains(_)).sorted
  }

  /** Other tasks of a job that failed may still run. */
  protected def awaitIdle(): Unit =
    eventually(assert(spark.sparkContext.statusTracker.getExecutorInfos.map(_.numRunningTasks).sum == 0))

  protected def inDataset(body: LocalPath => Unit): Unit = TempDir(parent => body(parent.resolve("dataset")))
}
