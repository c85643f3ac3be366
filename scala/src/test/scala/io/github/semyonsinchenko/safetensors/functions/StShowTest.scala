package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.types.StringType

import io.github.semyonsinchenko.safetensors.format.Dtype

class StShowTest extends FunctionsTest {

  private def tensor(data: String, shape: String, dtype: String): String =
    s"named_struct('data', X'$data', 'shape', $shape, 'dtype', '$dtype')"

  private def table(tensor: String): Unit =
    sql(s"SELECT $tensor AS t FROM range(1)").createOrReplaceTempView("tensors")

  private def shown(arguments: String): String = sql(s"SELECT st_show($arguments)").head().getString(0)

  test("a tensor is its dtype, its shape and its first three values") {
    assert(shown("arr_to_st(array(0.5, 1.25, -3, 4), array(2, 2), 'F32')") == "F32[2, 2] 0.5 1.25 -3 ...")
    assert(shown("arr_to_st(array(0.5, 1.25, -3), array(3), 'F32')") == "F32[3] 0.5 1.25 -3")
    assert(sql("SELECT st_show(arr_to_st(array(1), array(1), 'U8'))").schema.head.dataType == StringType)
  }

  test("values are as many as the second argument says, and all if there are fewer") {
    val tensor = "arr_to_st(array(1, 2), array(2), 'I16')"
    assert(shown(s"$tensor, 0") == "I16[2] ...")
    assert(shown(s"$tensor, 1L") == "I16[2] 1 ...")
    assert(shown(s"$tensor, 2147483647") == "I16[2] 1 2")
    assert(
      sql(s"SELECT st_show($tensor, CAST(id AS INT)) FROM range(1, 2)").head().getString(0) == "I16[2] 1 ...")
  }

  test("scalars and tensors without elements") {
    assert(shown("arr_to_st(array(7), array(), 'U8')") == "U8[] 7")
    assert(shown("arr_to_st(array(), array(0, 3), 'F32')") == "F32[0, 3]")
  }

  // The bytes of two elements, and the values that NumPy, ml_dtypes and PyTorch give them.
  private val values = Map[Dtype, (String, String)](
    Dtype.BOOL        -> ("0001", "false true"),
    Dtype.F4          -> ("2f", "0x2f"),
    Dtype.U8          -> ("00ff", "0 255"),
    Dtype.I8          -> ("00ff", "0 -1"),
    Dtype.F8_E5M2     -> ("3cfc", "1 -Infinity"),
    Dtype.F8_E4M3     -> ("387f", "1 NaN"),
    Dtype.F8_E8M0     -> ("7f80", "1 2"),
    Dtype.F8_E4M3FNUZ -> ("4080", "1 NaN"),
    Dtype.F8_E5M2FNUZ -> ("40c0", "1 -1"),
    Dtype.I16         -> ("0100ffff", "1 -1"),
    Dtype.U16         -> ("0100ffff", "1 65535"),
    Dtype.F16         -> ("662effff", "0.0999756 NaN"),
    Dtype.BF16        -> ("cd3d80ff", "0.100098 -Infinity"),
    Dtype.I32         -> ("01000000ffffffff", "1 -1"),
    Dtype.U32         -> ("01000000ffffffff", "1 4294967295"),
    Dtype.F32         -> ("cdcccc3d00000080", "0.1 0"),
    Dtype.C64         -> ("0000c03f000000400000803f000080bf", "1.5+2i 1-1i"),
    Dtype.F64         -> ("9a9999999999b93f333333333333d33f", "0.1 0.3"),
    Dtype.I64         -> ("0100000000000000ffffffffffffffff", "1 -1"),
    Dtype.U64         -> ("0100000000000000ffffffffffffffff", "1 18446744073709551615")
  )

  for ((dtype, (data, text)) <- values)
    test(s"values of $dtype") {
      assert(shown(tensor(data, "array(2)", dtype.name)) == s"$dtype[2] $text")
    }

  test("of six-bit elements, which share bytes, bytes are shown") {
    for (dtype <- Seq(Dtype.F6_E2M3, Dtype.F6_E3M2))
      assert(shown(tensor("2f00ff", "array(4)", dtype.name) + ", 2") == s"$dtype[4] 0x2f 0x00 ...")
    assert(values.size + 2 == Dtype.all.size)
  }

  test("floats have at most six digits, and an exponent where they are very large or small") {
    val numbers = "100000D, 123456.7D, 1234567D, 0.00012345678D, 1e-9D, -2e300D, 3D"
    assert(shown(s"arr_to_st(array($numbers), array(7), 'F64'), 7") ==
      "F64[7] 100000 123457 1.23457E+6 0.000123457 1E-9 -2E+300 3")
  }

  test("null in gives null out") {
    for (arguments <-
        Seq("NULL", "arr_to_st(NULL, array(1), 'F32')", "arr_to_st(array(1), array(1), 'U8'), NULL"))
      assert(shown(arguments) == null, arguments)
  }

  test("a tensor whose fields do not agree is refused in the words of st_to_array") {
    for (wrong <- Seq(
        tensor("0000000000", "array(2, 3)", "F32"),
        tensor("00", "array(-1)", "U8"),
        "named_struct('data', CAST(NULL AS BINARY), 'shape', array(1), 'dtype', 'F32')"
      )) {
      table(wrong)
      assert(failed("SELECT st_show(t) FROM tensors") ==
        failed("SELECT st_to_array(t) FROM tensors").replace("st_to_array", "st_show"))
    }
    table(tensor("00", "array(1)", "F128"))
    assert(failed("SELECT st_show(t) FROM tensors") ==
      s"st_show: the tensor's dtype is `F128`, which does not exist. Use one of ${Dtype.all.mkString(", ")}.")
  }

  test("elements smaller than a byte must fill whole bytes") {
    table(tensor("00", "array(1)", "F4"))
    assert(failed("SELECT st_show(t) FROM tensors") == "st_show: [1] of F4 is not a whole number of bytes.")
    table(tensor("00", "array(65536, 65536, 4)", "F4"))
    assert(failed("SELECT st_show(t) FROM tensors") ==
      "st_show: the tensor's `data` has 1 bytes, but [65536, 65536, 4] of F4 takes 8589934592.")
  }

  test("a negative number of values is refused, as a literal before anything runs") {
    val tensor  = "arr_to_st(array(1), array(1), 'U8')"
    val message = "the number of values is -1. Use 0 or more."
    assert(refused(s"SELECT st_show($tensor, -1)").contains(message))
    assert(failed(s"SELECT st_show($tensor, CAST(id AS INT) - 1) FROM range(1)") == s"st_show: $message")
  }

  test("what is no tensor, and a wrong number of arguments, are refused at analysis") {
    assert(refused("SELECT st_show(array(1.0))").contains("the argument is a tensor, STRUCT<data: BINARY"))
    assert(refused("SELECT st_show(arr_to_st(array(1), array(1), 'U8'), array(1))").contains(
        "requires the \"INT\" type"))
    assert(
      refused("SELECT st_show()").contains("`st_show` requires 1 or 2 parameters but the actual number is 0"))
  }
}
