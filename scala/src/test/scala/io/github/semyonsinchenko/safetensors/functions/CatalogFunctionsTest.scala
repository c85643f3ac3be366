package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.execution.WholeStageCodegenExec

import io.github.semyonsinchenko.safetensors.codec.{Decoders, Encoders, Rounding}
import io.github.semyonsinchenko.safetensors.format.Dtype

/** The catalog's functions beside the session's own, which they must not differ from. */
class CatalogFunctionsTest extends FunctionsTest {
  override protected def settings: Map[String, String] =
    Map("spark.sql.catalog.safetensors" -> "io.github.semyonsinchenko.safetensors.SafetensorsCatalog")

  private val names = TensorFunctions.all.map(_._1.funcName)

  /** Rows that are no literals, so that code is generated for them: numbers and what to make of them, and tensors. */
  override def beforeAll(): Unit = {
    import spark.implicits._
    (for (dtype <- Encoders.targets if dtype != Dtype.BOOL; rounding <- Rounding.all)
      yield (Seq(0.0, 1.1, 100.7), Seq(1, 3), dtype.name, rounding.name))
      .toDF("v", "shape", "dtype", "rounding").repartition(1).createOrReplaceTempView("rows")
    Decoders.sources.map { dtype =>
      val bytes = Array.tabulate[Byte](2 * dtype.bits / 8)(i => (3 * i + 1).toByte)
      (bytes, Seq(2), dtype.name)
    }.toDF("data", "shape", "dtype").selectExpr("struct(*) AS t").repartition(1).createOrReplaceTempView(
      "tensors")
    Seq[(Seq[Option[Int]], Seq[Int], String)](
      (Seq(Some(1), None), Seq(2), "U8"),
      (Seq(Some(256), Some(1)), Seq(2), "U8"),
      (Seq(Some(1)), Seq(2), "U8"),
      (Seq(Some(1)), Seq(-1), "U8"),
      (Seq(Some(1)), Seq(1), "C64"),
      (Seq(Some(1)), Seq(1), "float32")
    ).toDF("v", "shape", "dtype").repartition(1).createOrReplaceTempView("wrong")
  }

  /** The query with the catalog's functions in place of the session's. */
  private def qualified(query: String): String =
    s"\\b(${names.mkString("|")})\\(".r.replaceAllIn(query, "safetensors.$1(")

  private def assertSame(query: String): Unit = {
    val rows = sql(query).collect().toSeq
    assert(rows.nonEmpty && qualified(query) != query)
    assert(sql(qualified(query)).collect().toSeq == rows, query)
  }

  for (number <- Seq("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,1)"))
    test(s"arrays of $number become the same tensors of every dtype, in either rounding") {
      val array = s"transform(v, x -> CAST(x AS $number))"
      for (arguments <- Seq(s"$array, shape, dtype", s"$array, shape, dtype, rounding"))
        assertSame(
          s"SELECT hex(t.data), t.shape, t.dtype FROM (SELECT arr_to_st($arguments) AS t FROM rows)")
    }

  for (name <- Elements.all.map(_.function))
    test(s"$name gives the same elements of tensors of every dtype") {
      val small = if (name == "st_to_array_long") "WHERE t.dtype NOT LIKE '%F%'" else ""
      assertSame(s"SELECT t.dtype, $name(t) FROM tensors $small")
    }

  test("st_show gives the same text of tensors of every dtype") {
    for (arguments <- Seq("t", "t, 1", "t, t.shape[0] - 2", "NULL", "t, NULL", "t, nullif(t.shape[0], 2)"))
      assertSame(s"SELECT st_show($arguments) FROM tensors")
  }

  test("literals are cast to what the functions take") {
    for (call <-
        Seq("array(1.5, 2), array(2L), 'F32'", "array(), array(0, 3), 'U8'", "array(7), array(), 'I64'"))
      assertSame(s"SELECT hex(t.data), t.shape, t.dtype FROM (SELECT arr_to_st($call) AS t FROM range(1))")
  }

  test("null in gives null out") {
    for (call <- Seq("NULL, array(1), 'U8'", "array(1), NULL, 'U8'", "array(1), array(1), NULL"))
      assertSame(s"SELECT arr_to_st($call)")
    assertSame("SELECT arr_to_st(array(1), array(1), 'U8', NULL)")
    for (name <- Elements.all.map(_.function)) assertSame(s"SELECT $name(NULL)")
  }

  test("what a row cannot be is refused in the same words") {
    val calls = sql("SELECT count(*) FROM wrong").head().getLong(0)
    def refusal(function: String, row: Long) = failed(
      s"SELECT $function(v, shape, dtype) FROM (SELECT *, row_number() OVER (ORDER BY dtype, shape, v) - 1 AS n FROM wrong) " +
        s"WHERE n = $row")
    val messages = (0L until calls).map(refusal("arr_to_st", _))
    assert(messages.distinct.size == calls)
    assert((0L until calls).map(refusal("safetensors.arr_to_st", _)) == messages)
    val tensor = "named_struct('data', X'00', 'shape', array(CAST(id AS INT)), 'dtype', 'F32')"
    for (name <- Elements.all.map(_.function) :+ StShow.name)
      assert(failed(s"SELECT safetensors.$name($tensor) FROM range(1, 2)") ==
        failed(s"SELECT $name($tensor) FROM range(1, 2)"))
  }

  test("what an argument cannot be is refused before anything runs") {
    def says(call: String, words: String) = assert(refused(s"SELECT safetensors.$call").contains(words), call)
    says("arr_to_st(array('a'), array(1), 'F32')",
      "the first argument is an array of numbers, but got ARRAY<STRING>.")
    says("arr_to_st(array(1), array(1))", "expected 3 or 4 arguments, but got 2.")
    says("arr_to_st(array(1), array('a'), 'F32')", """requires the "ARRAY<INT>" type""")
    says("st_to_array(1)", "the argument is a tensor, STRUCT<data: BINARY")
    says("st_to_array_long()", "expected 1 argument, but got 0.")
    says("st_show(1)", "the argument is a tensor, STRUCT<data: BINARY")
    says("st_show()", "expected 1 or 2 arguments, but got 0.")
    says("arr_to_tensor(1)", "arr_to_tensor")
  }

  private val roundTrip = "st_to_array(arr_to_st(array(id, id + 1), array(2), 'F16', 'nearest_even'))"

  test("they run inside whole-stage code generation, and give the same without it") {
    val plan = sql(qualified(s"SELECT $roundTrip FROM range(3)")).queryExecution.executedPlan
    assert(plan.collect { case stage: WholeStageCodegenExec => stage }.mkString.contains("arr_to_st"), plan)
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try assertSame(s"SELECT $roundTrip FROM range(3)")
    finally {
      spark.conf.unset("spark.sql.codegen.factoryMode")
      spark.conf.unset("spark.sql.codegen.wholeStage")
    }
  }

  test("a column without an alias has the same name in every run") {
    def name = sql("SELECT safetensors.st_to_array(t) FROM tensors").columns.toSeq
    assert(name == name && name.head.contains("st_to_array"), name)
  }

  test("the catalog lists the functions") {
    val shown = sql("SHOW USER FUNCTIONS IN safetensors").collect().map(_.getString(0)).toSet
    assert(names.map("safetensors." + _).toSet.subsetOf(shown))
    assert(CatalogFunctions.all.forall(f => f.description.startsWith(s"${f.name}(")))
  }
}
