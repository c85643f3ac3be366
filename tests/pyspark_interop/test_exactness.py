"""The small floats' every bit pattern decoded, and all numbers around them encoded, against NumPy and ml_dtypes."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from official import NUMPY_TYPES
from safetensors_spark.functions import Dtype, Rounding, arr_to_st, st_to_array, st_to_array_double
from spark_io import TENSOR_STRUCT

Array = np.ndarray[Any, Any]

HALVES: list[Dtype] = ["F16", "BF16"]
BYTES = ["F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"]
ROUNDINGS: list[Rounding] = ["truncate", "nearest_even"]


def patterns(dtype: str) -> Array:
    """Every number that the dtype has, NaNs too."""
    bits = np.arange(1 << 16, dtype=np.uint16) if dtype in HALVES else np.arange(1 << 8, dtype=np.uint8)
    return bits.view(NUMPY_TYPES[dtype])


def evaluate(spark: SparkSession, dtype: str, values: Array, *columns: Column) -> Any:
    """The columns, which may use the tensor `t` of the values."""
    row = (bytearray(values.tobytes()), [len(values)], dtype)
    return spark.createDataFrame([row], TENSOR_STRUCT).select(F.struct("*").alias("t")).select(*columns).first()


def assert_same(found: Array, wanted: Array) -> None:
    """The same bits, but that any NaN is as good as another."""
    assert found.dtype == wanted.dtype
    is_nan = wanted != wanted
    np.testing.assert_array_equal(found != found, is_nan)
    np.testing.assert_array_equal(found[~is_nan].view(np.uint8), wanted[~is_nan].view(np.uint8))


@pytest.mark.parametrize("dtype", [*HALVES, *BYTES])
def test_every_pattern_is_decoded_to_its_number(spark: SparkSession, dtype: str) -> None:
    values = patterns(dtype)
    floats, doubles = evaluate(spark, dtype, values, st_to_array("t"), st_to_array_double("t"))
    with np.errstate(invalid="ignore"):
        assert_same(np.array(floats, np.float32), values.astype(np.float32))
        assert_same(np.array(doubles, np.float64), values.astype(np.float64))


def around(dtype: str, float_type: type[np.floating[Any]]) -> Array:
    """The numbers of a half dtype, the middles between them, and what is next to each."""
    halves = patterns(dtype)
    with np.errstate(invalid="ignore"):
        halves = halves[np.isfinite(halves)].astype(np.float64)
    # The first number past the largest, so that there is a middle to it.
    past = {"F16": 2.0**16, "BF16": 2.0**128}[dtype]
    numbers = np.unique(np.append(halves, [past, -past]))
    exact = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2])
    with np.errstate(over="ignore"):
        exact = exact.astype(float_type)
        exact = np.concatenate([exact[np.isfinite(exact)], np.array([-0.0, np.inf, -np.inf, np.nan], float_type)])
        return np.concatenate(
            [exact, np.nextafter(exact, float_type(-np.inf)), np.nextafter(exact, float_type(np.inf))]
        )


def rounded(values: Array, dtype: Dtype, rounding: Rounding) -> Array:
    with np.errstate(over="ignore"):
        nearest = values.astype(NUMPY_TYPES[dtype])
    if rounding == "nearest_even":
        return nearest
    past = np.abs(nearest.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(past & np.isfinite(values), nearest.view(np.uint16) - 1, nearest.view(np.uint16)).view(
        nearest.dtype
    )


def held(values: Array, dtype: Dtype, rounding: Rounding) -> Array:
    """Those of the values that do not go past the largest of the dtype, or are infinite."""
    if rounding == "truncate":
        return values[
            ~np.isfinite(values) | (np.abs(values.astype(np.float64)) < {"F16": 2.0**16, "BF16": 2.0**128}[dtype])
        ]
    return values[~np.isfinite(values) | np.isfinite(rounded(values, dtype, rounding).astype(np.float64))]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", HALVES)
def test_floats_around_every_pattern_are_encoded_as_numpy_does(
    spark: SparkSession, dtype: Dtype, rounding: Rounding
) -> None:
    values = held(around(dtype, np.float32), dtype, rounding)
    shape = [len(values)]
    as_floats = arr_to_st(st_to_array("t"), shape, dtype, rounding)
    as_doubles = arr_to_st(st_to_array_double("t"), shape, dtype, rounding)
    for tensor in evaluate(spark, "F32", values, as_floats, as_doubles):
        assert_same(np.frombuffer(tensor.data, NUMPY_TYPES[dtype]), rounded(values, dtype, rounding))


# ml_dtypes makes floats of doubles first, and so rounds twice on the way to BF16.
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_doubles_around_every_pattern_of_f16_are_rounded_once(spark: SparkSession, rounding: Rounding) -> None:
    values = held(around("F16", np.float64), "F16", rounding)
    [tensor] = evaluate(spark, "F64", values, arr_to_st(st_to_array_double("t"), [len(values)], "F16", rounding))
    assert_same(np.frombuffer(tensor.data, np.float16), rounded(values, "F16", rounding))
