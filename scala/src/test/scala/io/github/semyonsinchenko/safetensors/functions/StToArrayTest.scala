package io.github.semyonsinchenko.safetensors.functions

import org.apache.spark.sql.types.{ArrayType, DoubleType, FloatType, LongType}

import io.github.semyonsinchenko.safetensors.codec.Encoders
import io.github.semyonsinchenko.safetensors.format.Dtype

class StToArrayTest extends FunctionsTest {

  private def tensor(data: String, shape: String, dtype: String): String =
    s"named_struct('data', X'$data', 'shape', $shape, 'dtype', '$dtype')"

  private def table(tensor: String): Unit =
    sql(s"SELECT $tensor AS t FROM range(1)").createOrReplaceTempView("tensors")

  test("every dtype that numbers are encoded as comes back as floats") {
    for (dtype <- Encoders.targets if dtype != Dtype.BOOL)
      assert(array[Float](s"st_to_array(arr_to_st(array(1, 2, 3), array(3), '$dtype'))") == Seq(1f, 2f,
        3f))
  }

  test("BOOL and 8-bit floats come back as floats") {
    assert(array[Float](s"st_to_array(${tensor("000107", "array(3)", "BOOL")})") == Seq(0f, 1f, 7f))
    assert(array[Float](s"st_to_array(${tensor("387E", "array(2)", "F8_E4M3")})") == Seq(1f, 448f))
  }

  test("the result is an array without nulls, of the type that the function names") {
    val types =
      Map("st_to_array" -> FloatType, "st_to_array_double" -> DoubleType, "st_to_array_long" -> LongType)
    for ((function, element) <- types) {
      val df = sql(s"SELECT $function(arr_to_st(array(1), array(1), 'U8'))")
      assert(df.schema.head.dataType == ArrayType(element, containsNull = false))
      assert(df.head().getSeq[Any](0).map(_.toString.toDouble) == Seq(1.0))
    }
  }

  test("doubles and longs lose nothing of F64 and I64") {
    assert(array[Double]("st_to_array_double(arr_to_st(array(0.1), array(1), 'F64'))") == Seq(0.1))
    assert(array[Long]("st_to_array_long(arr_to_st(array(9007199254740993L), array(1), 'I64'))") ==
      Seq(9007199254740993L))
  }

  test("an empty tensor gives an empty array") {
    assert(array[Float](s"st_to_array(${tensor("", "array(0, 3)", "F32")})") == Seq())
  }

  test("null in gives null out") {
    assert(array[Float]("st_to_array(NULL)") == null)
    assert(array[Float]("st_to_array(arr_to_st(NULL, array(1), 'F32'))") == null)
  }

  test("bytes that do not fit shape and dtype are refused with all three") {
    table(tensor("0000000000", "array(2, 3)", "F32"))
    assert(failed("SELECT st_to_array(t) FROM tensors") ==
      "st_to_array: the tensor's `data` has 5 bytes, but [2, 3] of F32 takes 24.")
    table(tensor("00", "array(2147483647, 2147483647, 4)", "F64"))
    assert(failed("SELECT st_to_array(t) FROM tensors").endsWith("of F64 takes 147573952452237459488."))
  }

  test("a dtype whose elements are no single numbers is refused with a way out") {
    for (dtype <- Seq("F4", "F6_E2M3", "C64")) {
      table(tensor("00", "array(1)", dtype))
      assert(failed("SELECT st_to_array_double(t) FROM tensors") == s"st_to_array_double: $dtype elements " +
        "cannot be decoded to DOUBLE. Select the tensor's `data` and decode it in Python.")
    }
  }

  test("an unknown dtype is refused with the list of right ones") {
    table(tensor("00", "array(1)", "F128"))
    assert(failed("SELECT st_to_array(t) FROM tensors")
        .startsWith("st_to_array: the tensor's dtype is `F128`, which does not exist. Use one of F16, F32,"))
  }

  test("a null field and a shape that is none are refused") {
    table("named_struct('data', CAST(NULL AS BINARY), 'shape', array(1), 'dtype', 'F32')")
    assert(failed("SELECT st_to_array(t) FROM tensors") == "st_to_array: the tensor's `data` is null.")
    table(tensor("00", "array(-1)", "U8"))
    assert(
      failed("SELECT st_to_array(t) FROM tensors") == "st_to_array: the shape [-1] has a negative dimension.")
  }

  test("a number that no long holds is refused") {
    table("arr_to_st(array(1.5D, CAST('NaN' AS DOUBLE)), array(2), 'F16')")
    assert(failed("SELECT st_to_array_long(t) FROM tensors")
        .startsWith("st_to_array_long: I64 cannot hold NaN, the element at index 1:"))
  }

  test("what is no tensor is refused at analysis") {
    assert(refused("SELECT st_to_array(array(1.0))").contains(
        "the argument is a tensor, STRUCT<data: BINARY NOT NULL, shape: ARRAY<INT> NOT NULL, dtype: STRING NOT NULL>, " +
          "but got ARRAY<DECIMAL(2,1)>."))
  }

  test("a wrong number of arguments is refused with the right one") {
    assert(refused("SELECT st_to_array()").contains(
        "`st_to_array` requires 1 parameters but the actual number is 0"))
  }
}
