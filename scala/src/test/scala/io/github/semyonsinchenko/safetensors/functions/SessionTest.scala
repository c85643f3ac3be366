package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.execution.{ProjectExec, WholeStageCodegenExec}
import org.apache.spark.sql.functions.{call_function, col, expr, lit}

import io.github.semyonsinchenko.safetensors.SafetensorsExtensions

/** How the functions live in a session. */
class SessionTest extends FunctionsTest {

  private val roundTrip = "st_to_array(arr_to_st(array(id, id + 1), array(2), 'F16', 'nearest_even'))"

  private val arguments = Map(
    "literals" -> "'F16', 'nearest_even'",
    "columns"  -> "left(concat('F16', id), 3), concat('nearest_', left(concat('even', id), 4))"
  )

  for (decode <- Elements.all.map(_.function); (kind, dtypeAndRounding) <- arguments)
    test(s"$decode and arr_to_st of $kind run inside whole-stage code generation") {
      val shape = if (kind == "literals") "array(2)" else "array(CAST(id - id + 2 AS INT))"
      val query =
        s"SELECT $decode(arr_to_st(array(id, id + 1), $shape, $dtypeAndRounding)) AS v FROM range(3)"
      val df       = sql(query)
      val plan     = df.queryExecution.executedPlan
      val compiled = plan.collect { case stage: WholeStageCodegenExec => stage }
      val projects = compiled.flatMap(_.collect { case p: ProjectExec => p })
      // Without functions that leave code generation for the interpreter, as all of the stage would be beside it.
      val fallbacks = projects.flatMap(_.expressions.flatMap(_.collect { case e: CodegenFallback => e }))
      assert(projects.exists(_.toString.contains(s"$decode(arr_to_st(")) && fallbacks.isEmpty, plan)
      assert(s"""\\*\\(1\\) Project \\[$decode\\(""".r.findFirstIn(plan.toString).isDefined, plan)
      val code = compiled.map(_.doCodeGen()._2.body).mkString
      assert(code.contains("TensorToArray") && code.contains("ArrayToTensor"), code)
      val values = df.collect().map(_.getSeq[Any](0).map(_.toString.toDouble)).toSeq
      assert(values == Seq(Seq(0.0, 1.0), Seq(1.0, 2.0), Seq(2.0, 3.0)))
    }

  test("st_show runs inside whole-stage code generation") {
    val df       = sql("SELECT st_show(arr_to_st(array(id), array(1), 'U8')) AS v FROM range(3)")
    val compiled = df.queryExecution.executedPlan.collect { case stage: WholeStageCodegenExec => stage }
    assert(compiled.map(_.doCodeGen()._2.body).mkString.contains("TensorToText"))
    assert(df.collect().map(_.getString(0)).toSeq == Seq("U8[1] 0", "U8[1] 1", "U8[1] 2"))
  }

  test("interpreted evaluation gives what generated code gives") {
    val query = s"SELECT $roundTrip AS v, arr_to_st(array(id), array(1), 'U8') AS t FROM range(3)"
    def collected =
      sql(query).selectExpr("v", "hex(t.data)", "t.shape", "t.dtype",
        "st_show(t, t.shape[0])").collect().toSeq
    val generated = collected
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try assert(collected == generated)
    finally {
      spark.conf.unset("spark.sql.codegen.factoryMode")
      spark.conf.unset("spark.sql.codegen.wholeStage")
    }
  }

  test("DataFrames call the functions by name") {
    val tensor = call_function("arr_to_st", expr("array(id)"), expr("array(1)"), lit("I64"))
    val values =
      spark.range(2).select(call_function("st_to_array_long", tensor)).collect().map(_.getSeq[Long](0)).toSeq
    assert(values == Seq(Seq(0L), Seq(1L)))
  }

  test("tensors survive a shuffle, a sort and a cache") {
    val tensors =
      sql("SELECT id, arr_to_st(array(id), array(1), 'I32') AS t FROM range(4)").repartition(2).cache()
    try {
      val values =
        tensors.orderBy(col("id").desc).selectExpr("st_to_array(t)[0]").collect().map(_.getFloat(0)).toSeq
      assert(values == Seq(3f, 2f, 1f, 0f))
    } finally tensors.unpersist()
  }

  for ((_, info, _) <- TensorFunctions.all) {
    val name = info.getName

    test(s"DESCRIBE FUNCTION EXTENDED $name tells usage, arguments and examples") {
      val text = sql(s"DESCRIBE FUNCTION EXTENDED $name").collect().map(_.getString(0)).mkString("\n")
      assert(text.contains(s"Usage: $name("))
      assert(text.contains("Arguments:") && text.contains(s"> SELECT "))
    }

    test(s"the examples of $name give what they say") {
      val example  = """> (SELECT .*);\n +(.*)""".r
      val examples = example.findAllMatchIn(info.getExamples.replace("_FUNC_", name)).toSeq
      assert(examples.nonEmpty)
      for (e <- examples) {
        val shown = sql(e.group(1)).head().get(0) match {
          case values: scala.collection.Seq[_] => values.mkString("[", ",", "]")
          case other                           => other.toString
        }
        assert(shown == e.group(2), e.group(1))
      }
    }
  }
}

class AttachTest extends FunctionsTest {

  test("a session that was there before the jar is given the functions") {
    val registry = spark.sessionState.functionRegistry
    registry.listFunction().filter(_.funcName.contains("st_to_array")).foreach(registry.dropFunction)
    assert(!spark.catalog.functionExists("st_to_array"))
    new SafetensorsExtensions().register(spark)
    assert(array[Float]("st_to_array(arr_to_st(array(1.5), array(1), 'F32'))") == Seq(1.5f))
  }
}

class NoAnsiTest extends FunctionsTest {
  override protected def settings: Map[String, String] = Map("spark.sql.ansi.enabled" -> "false")

  test("literals are taken as numbers without ANSI mode too") {
    assert(array[Float]("st_to_array(arr_to_st(array(1.5, 2), array(2L), 'F32'))") == Seq(1.5f, 2f))
    assert(hex("arr_to_st(array(7), array(), 'U8')") == "07")
  }
}

class ExtensionsSettingTest extends FunctionsTest {
  override protected def settings: Map[String, String] =
    Map("spark.sql.extensions" -> "io.github.semyonsinchenko.safetensors.SafetensorsExtensions")

  test("the documented setting, beside what the jar does by itself, does no harm") {
    assert(array[Float]("st_to_array(arr_to_st(array(1.5), array(1), 'F32'))") == Seq(1.5f))
  }
}
