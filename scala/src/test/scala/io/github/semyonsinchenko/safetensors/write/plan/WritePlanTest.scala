package io.github.semyonsinchenko.safetensors.write.plan

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.format.Dtype
import io.github.semyonsinchenko.safetensors.types.TensorStruct

class WritePlanTest extends AnyFunSuite {
  private val schema = new StructType()
    .add("image", ArrayType(FloatType)).add("label", ArrayType(IntegerType)).add("emb", TensorStruct.dataType)

  private def plan(schema: StructType, options: (String, String)*): WritePlan =
    WritePlan.of(WriteOptions.of(new CaseInsensitiveStringMap(options.toMap.asJava)), schema)

  private def planned(options: (String, String)*): WritePlan =
    plan(schema, ("batch_size" -> "2") +: options: _*)

  private def refused(what: String)(options: (String, String)*)(message: String): Unit =
    test(s"refused: $what") {
      assert(intercept[InvalidRequestException](plan(schema, options: _*)).getMessage.contains(message))
    }

  test("an array takes its own dtype, a Tensor Struct brings its own, and the options have their defaults") {
    val write = planned()
    assert(write.columns.map(_.dtype) == Seq(Some(Dtype.F32), Some(Dtype.I32), None))
    assert(write.columns.map(_.shape) == Seq(None, None, None))
    assert(write.mode == WriteMode.Batch(2, Tail.Write))
    assert(write.columns.head.rounding == Rounding.Truncate)
    assert(write.metadata == Map("format" -> "pt"))
    assert(write.options == Map("batch_size" -> "2"))
  }

  test("each type of number takes the dtype that is its like") {
    val types =
      Seq(FloatType -> Dtype.F32, DoubleType -> Dtype.F64, IntegerType -> Dtype.I32, LongType -> Dtype.I64,
        ShortType   -> Dtype.I16, ByteType   -> Dtype.I8)
    for ((element, dtype) <- types)
      assert(plan(new StructType().add("x", ArrayType(element)),
          "batch_size" -> "1").columns.head.dtype.contains(dtype))
  }

  test("one dtype for all, or by column") {
    assert(planned("dtype" -> "F16").columns.map(_.dtype.get) == Seq.fill(3)(Dtype.F16))
    assert(planned("dtype" -> """{"label":"U8"}""").columns.map(_.dtype) == Seq(Some(Dtype.F32),
      Some(Dtype.U8), None))
  }

  test("shapes by column, an empty one for a scalar") {
    assert(planned("shapes" -> """{"image":[3,4],"label":[]}""").columns.map(_.shape) ==
      Seq(Some(Seq(3, 4)), Some(Nil), None))
  }

  test("columns by commas or as JSON, in the order given, by Spark's rule for case") {
    assert(planned("columns" -> "emb, LABEL").columns.map(c => (c.name, c.ordinal)) == Seq(("emb", 2),
      ("label", 1)))
    assert(planned("columns" -> """["image"]""").columns.map(_.name) == Seq("image"))
  }

  refused("neither a batch size nor a name column")()(
    "needs the option `batch_size`, the number of rows that make one shard, or `name_col`")
  refused("a batch of no rows")("batch_size" -> "0")(
    "Option `batch_size` is `0`: it must be a whole number from 1 to 2147483647.")
  refused("an unknown dtype")("batch_size" -> "1", "dtype" -> "f32")(
    "Option `dtype` is `f32`: it must be one of BOOL, F4,")
  refused("a dtype that numbers cannot be written as")("batch_size" -> "1", "dtype" -> "F8_E4M3")(
    "Column `image` holds numbers, which cannot be written as F8_E4M3")
  refused("a dtype for a column that is not written")("batch_size" -> "1", "dtype" -> """{"x":"F32"}""")(
    "Option `dtype` names `x`, but the columns to write are: image, label, emb.")
  refused("a shape for a column that is not written")("batch_size" -> "1", "columns" -> "emb",
    "shapes"                                                       -> """{"image":[1]}""")(
    "Option `shapes` names `image`, but the columns to write are: emb.")
  refused("a negative dimension")("batch_size" -> "1", "shapes" -> """{"image":[-1]}""")(
    "Option `shapes` is `{\"image\":[-1]}`")
  refused("a column that is not there")("batch_size" -> "1", "columns" -> "x")(
    "Option `columns` names `x`, but the columns are: image, label, emb.")
  refused("a tail strategy that is none")("batch_size" -> "1", "tail_strategy" -> "x")(
    "it must be `write` or `drop` or `pad`.")
  refused("metadata that is no object of strings")("batch_size" -> "1", "metadata" -> """{"a":1}""")(
    "it must be a JSON object whose values are strings.")

  test("dtype and shapes find their columns by Spark's rule for case") {
    val label = planned("dtype" -> """{"LABEL":"U8"}""", "shapes" -> """{"Label":[]}""").columns(1)
    assert(label.dtype.contains(Dtype.U8) && label.shape.contains(Nil))
  }

  refused("text behind JSON")("batch_size" -> "1", "shapes" -> """{"image":[1]} junk""")("Option `shapes` is")
  refused("a name twice in JSON")("batch_size" -> "1", "dtype" -> """{"label":"U8","label":"I8"}""")(
    "Option `dtype` is")

  test("refused: a column that is no tensor, with the option that leaves it out") {
    val error = intercept[InvalidRequestException](plan(new StructType().add("s", ArrayType(StringType)),
      "batch_size" -> "1"))
    assert(error.getMessage.contains(
      "Column `s` is array<string>, which is no tensor") && error.getMessage.contains("`columns`"))
  }

  test("refused: columns that differ only in case") {
    val both = new StructType().add("x", ArrayType(FloatType)).add("X", ArrayType(FloatType))
    assert(intercept[InvalidRequestException](plan(both, "batch_size" -> "1")).getMessage.contains(
        "Columns `x` and `X` differ only in case"))
  }

  test("refused: a tensor with the name of the metadata") {
    val schema = new StructType().add("__metadata__", ArrayType(FloatType))
    assert(intercept[InvalidRequestException](plan(schema, "batch_size" -> "1")).getMessage.contains(
        "the format keeps that name"))
  }
}
