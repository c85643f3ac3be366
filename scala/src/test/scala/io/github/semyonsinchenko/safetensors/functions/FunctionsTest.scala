package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.{AnalysisException, DataFrame, Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A small session that has the functions by the jar alone, and what the tests of functions ask of it. */
abstract class FunctionsTest extends AnyFunSuite with BeforeAndAfterAll {

  protected def settings: Map[String, String] = Map.empty

  protected lazy val spark: SparkSession = SparkSession.builder()
    .master("local[1]")
    .config(Map("spark.ui.enabled" -> "false", "spark.sql.shuffle.partitions" -> "1") ++ settings)
    .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  protected def sql(query: String): DataFrame = spark.sql(query)

  private def head(expression: String): Row = sql(s"SELECT $expression").head()

  protected def row(expression: String): Row = head(expression).getStruct(0)

  /** The elements of the array that the expression gives; null where it is null. */
  protected def array[T](expression: String): Seq[T] = head(expression).getSeq[T](0)

  protected def hex(tensor: String): String = head(s"lower(hex(($tensor).data))").getString(0)

  /** The message of a query that analysis refuses. */
  protected def refused(query: String): String = intercept[AnalysisException](sql(query)).getMessage

  /** The message of what ends a query while it runs, as Spark hands it to the user. */
  protected def failed(query: String): String =
    intercept[InvalidTensorException](sql(query).collect()).getMessage
}
