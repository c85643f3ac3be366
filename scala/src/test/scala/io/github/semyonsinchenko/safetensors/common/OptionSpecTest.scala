package io.github.semyonsinchenko.safetensors.common

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.scalatest.funsuite.AnyFunSuite

class OptionSpecTest extends AnyFunSuite {
  private val size  = OptionSpec[Int]("batch_size", None, "")(_.toIntOption.toRight("a whole number"))
  private val infer = OptionSpec("inferSchema", Some("false"), "")(OptionSpec.flag)

  private def options(entries: (String, String)*) = new CaseInsensitiveStringMap(entries.toMap.asJava)

  private def refused(entries: (String, String)*): String =
    intercept[InvalidRequestException](OptionSpec.checkNames(entries.map(_._1),
      Seq(size, infer))).getMessage

  test("a value, a default, and none of either") {
    assert(size.get(options("BATCH_SIZE" -> " 7 ")).contains(7))
    assert(infer.get(options()).contains(false))
    assert(size.get(options()).isEmpty)
  }

  test("spaces around a value count only where it is taken as it is") {
    val separator = OptionSpec[String]("kv_separator", Some("__"), "", verbatim = true)(Right(_))
    assert(separator.get(options("kv_separator" -> " ")).contains(" "))
    assert(infer.get(options("inferSchema" -> " true ")).contains(true))
  }

  test("a wrong value is an error that says what is right") {
    val error = intercept[InvalidRequestException](size.get(options("batch_size" -> "many")))
    assert(error.getMessage == "Option `batch_size` is `many`: it must be a whole number.")
  }

  test("an unknown option is an error that names the nearest right one") {
    assert(refused("batchsize" -> "1").startsWith("Unknown option `batchsize`. Did you mean `batch_size`?"))
    assert(
      refused("infer_schema" -> "1").startsWith("Unknown option `infer_schema`. Did you mean `inferSchema`?"))
  }

  test("an option that resembles none is an error without a guess") {
    assert(refused(
      "compression" -> "1") == "Unknown option `compression`. The options are: batch_size, inferSchema.")
  }

  test("Spark's own options and Hadoop's settings pass") {
    OptionSpec.checkNames(Seq("path", "fs.s3a.endpoint", "inferschema"),
      Seq(size, infer))
  }
}
