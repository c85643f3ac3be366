package io.github.semyonsinchenko.safetensors.write.plan

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.scalatest.funsuite.AnyFunSuite

import io.github.semyonsinchenko.safetensors.codec.Rounding
import io.github.semyonsinchenko.safetensors.common.InvalidRequestException
import io.github.semyonsinchenko.safetensors.dataset.{ColumnKind, ColumnRecord}
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
    assert(write.mode == WriteMode.Batch(BatchRows.Exactly(2), Tail.Write))
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
    "needs the option `batch_size`, the number of rows that make one shard or `auto`, or `name_col`")
  refused("a batch of no rows")("batch_size" -> "0")(
    "Option `batch_size` is `0`: it must be a whole number from 1 to 2147483647, or `auto`.")
  refused("a tail of shards that are filled")("batch_size" -> "auto", "tail_strategy" -> "drop")(
    "The option `tail_strategy=drop` needs a number of rows as `batch_size`")
  refused("an unknown dtype")("batch_size" -> "1", "dtype" -> "f32")(
    "Option `dtype` is `f32`: it must be one of BOOL, F4,")
  refused("a dtype that numbers cannot be written as")("batch_size" -> "1", "dtype" -> "F8_E8M0")(
    "Column `image` holds numbers, which cannot be written as F8_E8M0")
  refused("a dtype for a column that is not written")("batch_size" -> "1", "dtype" -> """{"x":"F32"}""")(
    "Option `dtype` names `x`, but the columns to write are: image, label, emb.")
  refused("a shape for a column that is not written")("batch_size" -> "1", "columns" -> "emb",
    "shapes"                                                       -> """{"image":[1]}""")(
    "Option `shapes` names `image`, but the columns to write are: emb.")
  refused("a negative dimension")("batch_size" -> "1", "shapes" -> """{"image":[-1]}""")(
    "Option `shapes` is `{\"image\":[-1]}`")
  refused("a column that does not exist")("batch_size" -> "1", "columns" -> "x")(
    "Option `columns` names `x`, but the columns are: image, label, emb.")
  refused("a tail strategy that is none")("batch_size" -> "1", "tail_strategy" -> "x")(
    "it must be `write` or `drop` or `pad`.")
  refused("metadata that is not an object of strings")("batch_size" -> "1", "metadata" -> """{"a":1}""")(
    "it must be a JSON object whose values are strings.")

  test("dtype and shapes find their columns by Spark's rule for case") {
    val label = planned("dtype" -> """{"LABEL":"U8"}""", "shapes" -> """{"Label":[]}""").columns(1)
    assert(label.dtype.contains(Dtype.U8) && label.shape.contains(Nil))
  }

  refused("text behind JSON")("batch_size" -> "1", "shapes" -> """{"image":[1]} junk""")("Option `shapes` is")
  refused("a name twice in JSON")("batch_size" -> "1", "dtype" -> """{"label":"U8","label":"I8"}""")(
    "Option `dtype` is")

  test("refused: a column that is not a tensor, with the option that leaves it out") {
    val error = intercept[InvalidRequestException](plan(new StructType().add("s", ArrayType(StringType)),
      "batch_size" -> "1"))
    assert(error.getMessage.contains(
      "Column `s` is array<string>, which is not a tensor") && error.getMessage.contains("`columns`"))
  }

  private val mixed =
    new StructType().add("ids", ArrayType(LongType)).add("t", StringType).add("raw", BinaryType)
      .add("ok", BooleanType).add("d", DateType).add("ts", TimestampType).add("ntz", TimestampNTZType)
      .add("emb", TensorStruct.dataType).add("n", IntegerType)

  private def refusedOf(what: String, schema: StructType = mixed)(options: (String, String)*)(
      message: String): Unit =
    test(s"refused: $what") {
      assert(intercept[InvalidRequestException](plan(schema, options: _*)).getMessage.contains(message))
    }

  test("columns have kinds by their types, and by the option `ragged`") {
    val columns = plan(mixed, "batch_size" -> "2", "ragged" -> "IDS, emb").columns
    assert(columns.map(_.kind.name) == Seq("ragged", "text", "binary", "fixed", "date", "timestamp",
      "timestamp_ntz", "ragged", "fixed"))
    assert(columns.map(_.dtype.map(_.name)) == Seq(Some("I64"), Some("U8"), Some("U8"), Some("BOOL"),
      Some("I32"),
      Some("I64"), Some("I64"), None, Some("I32")))
    assert(columns.map(_.shape) == Seq.fill(7)(Some(Nil)) ++ Seq(None, Some(Nil)))
    assert(columns.map(_.sparkType).take(2) == Seq("array<bigint>", "string"))
  }

  test("a shard names the kinds of its columns, by name") {
    val names =
      new StructType().add("b\"", StringType).add("\ue000", StringType).add("\ud83d\ude00", StringType)
        .add("a", StringType).add("x", LongType)
    assert(plan(names, "batch_size" -> "2").shardMetadata("column_kinds") ==
      "{\"a\":\"text\",\"b\\\"\":\"text\",\"\ue000\":\"text\",\"\ud83d\ude00\":\"text\"}")
    assert(planned().shardMetadata == Map("format" -> "pt"))
  }

  test("one dtype for all leaves out strings, binary values and times") {
    assert(plan(mixed, "batch_size" -> "2", "dtype" -> "F16", "columns" -> "ids,t,raw,d,ts,ok").columns.map(
      _.dtype.get.name) == Seq("F16", "U8", "U8", "I32", "I64", "F16"))
  }

  refusedOf("a dtype of a string")("batch_size" -> "1", "dtype" -> """{"t":"I8"}""")(
    "Column `t` is string, which is stored as U8, not as I8")
  refusedOf("a shape of a ragged column")("batch_size" -> "1", "shapes" -> """{"t":[4]}""")(
    "Option `shapes` names `t`, which is text")
  refusedOf("ragged numbers")("batch_size" -> "1", "ragged" -> "ids,n")(
    "Option `ragged` names `n`, which is int: its rows are single values")
  refusedOf("ragged dates")("batch_size" -> "1", "ragged" -> "d")("Option `ragged` names `d`, which is date")
  refusedOf("a ragged column that is not written")("batch_size" -> "1", "columns" -> "t", "ragged" -> "ids")(
    "Option `ragged` names `ids`, but the columns to write are: t.")
  refusedOf("ragged columns by key")("name_col" -> "t", "columns" -> "ids", "ragged" -> "ids")(
    "The option `ragged` is for batches. With `name_col` each row is a tensor of its own shape.")
  refusedOf("strings by key")("name_col" -> "n", "columns" -> "t")(
    "Column `t` is string, which only batches store, with `batch_size`.")
  refusedOf("a column with the name of another's offsets",
    new StructType().add("T", StringType).add("t.Offsets", LongType))("batch_size" -> "1")(
    "Column `t.Offsets` has the name of the tensor in which the offsets of column `T` are stored")
  refusedOf("metadata of the name that the kinds have")("batch_size" -> "1",
    "metadata" -> """{"column_kinds":"x"}""")("Option `metadata` has `column_kinds`")

  test("refused: a shape of Tensor Structs that the dataset stores as rows of different lengths") {
    val schema = new StructType().add("x", TensorStruct.dataType)
    val write  = plan(schema, "batch_size" -> "1", "shapes" -> """{"x":[4]}""")
    for (kind <- Seq(ColumnKind.Ragged, ColumnKind.Text, ColumnKind.Binary))
      assert(
        intercept[InvalidRequestException](write.appendingTo(Seq(ColumnRecord("x", Some("U8"), Some(Nil),
          kind)))).getMessage
          .contains(s"Option `shapes` names `x`, which is ${kind.name}"))
    val fixed = write.appendingTo(Seq(ColumnRecord("x", Some("U8"), Some(Seq(4)))))
    assert(fixed.columns.map(_.shape) == Seq(Some(Seq(4))))
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
