"""The typed helpers build the SQL functions' calls from Python values and from columns."""

import struct
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F

from safetensors_spark.functions import arr_to_st, st_show, st_to_array, st_to_array_double, st_to_array_long


def _value(spark: SparkSession, column: Column) -> Any:
    """The column's value in a row with an array `a`, a shape `s` and a dtype `d`."""
    frame = spark.createDataFrame([([1.5, 2.5], [2, 1], "F64")], "a array<double>, s array<int>, d string")
    row = frame.select(column.alias("value")).first()
    assert row is not None
    return row["value"]


def test_shape_and_dtype_from_python(spark: SparkSession) -> None:
    assert _value(spark, arr_to_st("a", (1, 2), "F32")) == Row(
        data=bytearray(struct.pack("<2f", 1.5, 2.5)), shape=[1, 2], dtype="F32"
    )


def test_shape_and_dtype_from_columns(spark: SparkSession) -> None:
    assert _value(spark, arr_to_st(F.col("a"), F.col("s"), F.col("d"))) == Row(
        data=bytearray(struct.pack("<2d", 1.5, 2.5)), shape=[2, 1], dtype="F64"
    )


def test_no_dimensions_make_a_scalar(spark: SparkSession) -> None:
    assert _value(spark, arr_to_st(F.array(F.lit(7)), [], "U8")) == Row(data=bytearray([7]), shape=[], dtype="U8")


def test_rounding_is_passed_on(spark: SparkSession) -> None:
    tenth = F.array(F.lit(0.1))
    assert _value(spark, arr_to_st(tenth, [1], "BF16")).data.hex() == "cc3d"
    assert _value(spark, arr_to_st(tenth, [1], "BF16", "truncate")).data.hex() == "cc3d"
    assert _value(spark, arr_to_st(tenth, [1], "BF16", rounding="nearest_even")).data.hex() == "cd3d"


def test_decoding_gives_the_numbers_back(spark: SparkSession) -> None:
    assert _value(spark, st_to_array(arr_to_st("a", [2], "F16"))) == [1.5, 2.5]


def test_doubles_lose_nothing_of_f64(spark: SparkSession) -> None:
    tenth = F.array(F.lit(0.1), F.lit(1e300))
    assert _value(spark, st_to_array_double(arr_to_st(tenth, [2], "F64"))) == [0.1, 1e300]
    assert _value(spark, st_to_array(arr_to_st(tenth, [2], "F64"))) == [
        struct.unpack("<f", bytes.fromhex("cdcccc3d"))[0],
        float("inf"),
    ]


def test_longs_lose_nothing_of_i64(spark: SparkSession) -> None:
    numbers = [2**53 + 1, -(2**63)]
    array = F.array(*map(F.lit, numbers))
    assert _value(spark, st_to_array_long(arr_to_st(array, [2], "I64"))) == numbers
    assert _value(spark, st_to_array_double(arr_to_st(array, [2], "I64"))) == [2.0**53, -(2.0**63)]


def test_longs_give_up_fractions_and_refuse_what_they_cannot_hold(spark: SparkSession) -> None:
    assert _value(spark, st_to_array_long(arr_to_st(F.array(F.lit(-1.9)), [1], "F32"))) == [-1]
    with pytest.raises(Exception, match="st_to_array_long: I64 cannot hold NaN, the element at index 1"):
        _value(spark, st_to_array_long(arr_to_st(F.array(F.lit(1.0), F.lit(float("nan"))), [2], "F32")))


def test_text_shows_dtype_shape_and_the_first_values(spark: SparkSession) -> None:
    tensor = arr_to_st(F.array(*map(F.lit, (0.5, 1.25, -3.0, 4.0))), [2, 2], "F32")
    assert _value(spark, st_show(tensor)) == "F32[2, 2] 0.5 1.25 -3 ..."
    assert _value(spark, st_show(tensor, 1)) == "F32[2, 2] 0.5 ..."
    assert _value(spark, st_show(tensor, F.element_at("s", 1))) == "F32[2, 2] 0.5 1.25 ..."
    assert _value(spark, st_show(arr_to_st("a", [2], "F64"), 5)) == "F64[2] 1.5 2.5"


def test_text_of_a_negative_number_of_values_is_refused_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="the number of values is -1"):
        spark.range(1).select(st_show(arr_to_st(F.array(F.lit(1)), [1], "U8"), -1))


def test_a_tensor_that_is_null_has_no_array_and_no_text(spark: SparkSession) -> None:
    for decode in (st_to_array, st_to_array_double, st_to_array_long, st_show):
        assert _value(spark, decode(arr_to_st("a", F.lit(None), "F32"))) is None


def test_a_dtype_that_is_none_is_refused_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="F33"):
        spark.range(1).select(arr_to_st(F.array(F.lit(1)), [1], "F33"))  # type: ignore[arg-type]


def test_a_shape_that_does_not_fit_is_an_error_of_the_query(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"\[3\].*2|2.*\[3\]"):
        _value(spark, arr_to_st("a", [3], "F32"))
