package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.Row

import io.github.semyonsinchenko.safetensors.types.TensorStruct

class ArrToStTest extends FunctionsTest {

  /** Rows that are no literals, so that checks are left to them. */
  override def beforeAll(): Unit = {
    import spark.implicits._
    Seq(
      (1, Seq(1.5f, 2.5f), Seq(2), "F16", "truncate"),
      (2, Seq(1f, 2f, 300f, 4f), Seq(2, 2), "U16", "nearest_even")
    ).toDF("id", "v", "shape", "dtype", "rounding").repartition(1).createOrReplaceTempView("rows")
    Seq((1, Seq(Some(1.5f), None)), (2, null)).toDF("id", "v").repartition(1).createOrReplaceTempView("nulls")
  }

  test("the result is a Tensor Struct with fields that are never null") {
    val df = sql("SELECT arr_to_st(v, array(2), 'F32') AS t FROM rows WHERE id = 1")
    assert(df.schema("t").dataType == TensorStruct.dataType)
    val Row(data: Array[Byte], shape, dtype) = df.head().getStruct(0): @unchecked
    assert(data.toSeq == Seq[Byte](0, 0, 0xc0.toByte, 0x3f, 0, 0, 0x20, 0x40))
    assert(shape == Seq(2) && dtype == "F32")
  }

  test("arrays of every numeric type go in") {
    for (number <- Seq("1Y", "1S", "1", "1L", "1F", "1D", "1.0"))
      assert(hex(s"arr_to_st(array($number), array(1), 'I16')") == "0100", number)
  }

  test("columns of every numeric type go in") {
    for (name <- Seq("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,1)")) {
      val tensor = s"arr_to_st(transform(v, x -> CAST(x AS $name)), array(2), 'F64')"
      val values = sql(s"SELECT st_to_array_double($tensor) FROM rows WHERE id = 1").head().getSeq[Double](0)
      assert(values == (if (name.endsWith("int")) Seq(1.0, 2.0) else Seq(1.5, 2.5)), name)
    }
  }

  test("an empty shape makes a scalar, and a zero an empty tensor") {
    assert(row("arr_to_st(array(7), array(), 'U8')").toSeq.drop(1) == Seq(Seq(), "U8"))
    assert(hex("arr_to_st(array(7), array(), 'U8')") == "07")
    assert(hex("arr_to_st(array(), array(0, 3), 'F32')") == "")
  }

  test("half floats are truncated unless they are to be rounded") {
    assert(hex("arr_to_st(array(0.1), array(1), 'BF16')") == "cc3d")
    assert(hex("arr_to_st(array(0.1), array(1), 'BF16', 'truncate')") == "cc3d")
    assert(hex("arr_to_st(array(0.1), array(1), 'BF16', 'nearest_even')") == "cd3d")
    assert(hex("arr_to_st(array(65519D), array(1), 'F16', 'nearest_even')") == "ff7b")
  }

  test("shape, dtype and rounding may differ from row to row") {
    val rows = sql("SELECT arr_to_st(v, shape, dtype, rounding) AS t FROM rows ORDER BY id").collect()
    assert(rows.map(_.getStruct(0).toSeq.drop(1)).toSeq == Seq(Seq(Seq(2), "F16"), Seq(Seq(2, 2), "U16")))
    assert(rows(1).getStruct(0).getAs[Array[Byte]]("data").toSeq == Seq[Byte](1, 0, 2, 0, 44, 1, 4, 0))
  }

  test("null in gives null out") {
    for (call <- Seq(
        "arr_to_st(NULL, array(1), 'F32')",
        "arr_to_st(array(1), NULL, 'F32')",
        "arr_to_st(array(1), array(1), NULL)",
        "arr_to_st(array(1), array(1), 'F32', NULL)"
      ))
      assert(row(call) == null, call)
    assert(sql("SELECT arr_to_st(v, array(2), 'F32') FROM nulls WHERE id = 2").head().isNullAt(0))
  }

  test("a null element is refused with its place") {
    assert(failed("SELECT arr_to_st(v, array(2), 'F32') FROM nulls WHERE id = 1") ==
      "arr_to_st: the array's element at index 1 is null, and tensors have no nulls. Fill or drop them first.")
  }

  test("what the dtype cannot hold is refused with value, place and range") {
    assert(failed("SELECT arr_to_st(v, array(2, 2), 'U8') FROM rows WHERE id = 2") ==
      "arr_to_st: U8 cannot hold 300.0, the element at index 2: it holds whole numbers from 0 to 255.")
  }

  private val dtypes =
    "Use one of F16, F32, F64, BF16, U8, I8, U16, I16, U32, I32, U64, I64, BOOL, F8_E4M3, F8_E5M2."

  /** The argument, as a literal at analysis and as a column for a row, is refused in the same words. */
  private def refusedBothWays(name: String, literal: String)(message: String): Unit = {
    val arguments = Seq("shape" -> "array(2)", "dtype" -> "'F32'", "rounding" -> "'truncate'")
    def call(argument: String) = arguments.map { case (n, usual) =>
      if (n == name) argument else usual
    }.mkString(", ")
    assert(refused(s"SELECT arr_to_st(v, ${call(literal)}) FROM rows").contains(message))
    // The column makes it no literal, and changes nothing.
    val column =
      if (name == "shape") s"filter($literal, x -> id > 0 OR x IS NULL)" else s"concat($literal, left(id, 0))"
    assert(failed(s"SELECT arr_to_st(v, ${call(column)}) FROM rows WHERE id = 1") == s"arr_to_st: $message")
  }

  test("booleans are encoded as bytes of 0 and 1, and as numbers") {
    sql("SELECT array(id = 0, id = 1, true) AS b FROM range(1)").createOrReplaceTempView("flags")
    assert(sql("SELECT hex(arr_to_st(b, array(3), 'BOOL').data) FROM flags").head().getString(0) == "010001")
    assert(
      sql("SELECT hex(arr_to_st(b, array(3), 'BF16').data) FROM flags").head().getString(0) == "803F0000803F")
    assert(failed("SELECT arr_to_st(array(2), array(1), 'BOOL') FROM flags") ==
      "arr_to_st: BOOL cannot hold 2, the element at index 0: it holds whole numbers from 0 to 1.")
  }

  test("an unknown dtype is refused with the list of right ones") {
    refusedBothWays("dtype", "'f32'")(s"there is no dtype `f32`. $dtypes")
  }

  test("a dtype that numbers cannot be encoded as is refused") {
    refusedBothWays("dtype", "'C64'")(s"numbers cannot be encoded as dtype C64. $dtypes")
    refusedBothWays("dtype", "'F8_E8M0'")(s"numbers cannot be encoded as dtype F8_E8M0. $dtypes")
  }

  test("an unknown rounding is refused") {
    refusedBothWays("rounding", "'up'")("there is no rounding `up`. Use `truncate` or `nearest_even`.")
  }

  test("a shape with a dimension that is negative or null is refused") {
    refusedBothWays("shape", "array(2, -1)")("the shape [2, -1] has a negative dimension.")
    refusedBothWays("shape", "array(2, NULL)")("the shape [2, null] has a null dimension.")
  }

  test("a shape of another number of elements than the array has is refused with both") {
    assert(failed("SELECT arr_to_st(v, array(2, 3), 'F32') FROM rows WHERE id = 1") ==
      "arr_to_st: the shape [2, 3] has 6 elements, but the array has 2.")
    assert(failed(
      "SELECT arr_to_st(v, array(2147483647, 2147483647, 2147483647), 'F32') FROM rows WHERE id = 1") ==
      "arr_to_st: the shape [2147483647, 2147483647, 2147483647] has 9903520300447984150353281023 elements, " +
      "but the array has 2.")
  }

  test("a wrong number of elements is refused at analysis when the call shows it") {
    assert(refused("SELECT arr_to_st(array(1.5, 2.5), array(3), 'F32')")
        .contains("the shape [3] has 3 elements, but the array has 2."))
    assert(refused("SELECT arr_to_st(array(id, id), array(), 'F32') FROM rows")
        .contains("the shape [] has 1 elements, but the array has 2."))
  }

  test("what is no array of numbers is refused at analysis") {
    assert(refused("SELECT arr_to_st(array('a'), array(1), 'F32')")
        .contains("the first argument is an array of numbers, but got ARRAY<STRING>."))
    assert(refused("SELECT arr_to_st(1, array(1), 'F32')")
        .contains("the first argument is an array of numbers, but got INT."))
  }

  test("a wrong number of arguments is refused with the right one") {
    val message = refused("SELECT arr_to_st(array(1), array(1))")
    assert(message.contains("`arr_to_st` requires 3 or 4 parameters but the actual number is 2"))
  }
}
