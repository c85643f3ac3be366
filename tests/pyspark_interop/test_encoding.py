"""All dtypes from all types of numbers that Spark has, in every form of a cell, against NumPy."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, StructField, StructType, _parse_datatype_string

from official import NUMPY_TYPES, load
from spark_io import files, frame, write

TARGETS = ["F16", "BF16", "F32", "F64", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"]
HALVES = {"F16": 2.0**16, "BF16": 2.0**128}

INPUTS: dict[str, Any] = {
    "tinyint": np.int8,
    "smallint": np.int16,
    "int": np.int32,
    "bigint": np.int64,
    "float": np.float32,
    "double": np.float64,
}

# The limits of all integer dtypes, and what is next to them.
WHOLE = sorted(
    {sign * 2**bits + step for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for step in (-1, 0, 1)}
    | {-1, 0, 1, 77, 2048, 2049, 2051, 65504, 65519, 65520, 65535}
)

# Subnormals of each float dtype, ties, limits, and what is next to them.
FLOATS = np.array(
    [0.0, -0.0, 0.1, -2.75, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, np.pi,
     2.0**-149, -(2.0**-149), 2.0**-126, 2.0**-127, 2.0**-133, 2.0**-134, 3 * 2.0**-134, 1e-40,
     2.0**-24, 2.0**-25, 3 * 2.0**-25, 1023 * 2.0**-24, 2.0**-14, 6e-8, 6e-5,
     65504, 65519, 65520, 65535, 65536, -65536, 3.3895314e38, -3.4e38, 3.4028235e38, np.inf, -np.inf, np.nan],
    np.float32,
)  # fmt: skip

DOUBLES = np.array([5e-324, -5e-324, 2.0**-1022, 2.0**-1023, 3.5e38, -1e39, 1.7976931348623157e308, 1 / 3, 2.0**-150])


def numbers(input_type: str) -> np.ndarray[Any, Any]:
    """The values to try of a type."""
    numpy_type = INPUTS[input_type]
    if np.issubdtype(numpy_type, np.integer):
        limits = np.iinfo(numpy_type)
        return np.array([value for value in WHOLE if limits.min <= value <= limits.max], numpy_type)
    # A whole number of more digits than the type has becomes the nearest one of it.
    whole = np.array([float(value) for value in WHOLE], np.float64).astype(numpy_type)
    values = np.concatenate([FLOATS.astype(numpy_type), whole])
    return np.concatenate([values, DOUBLES]) if input_type == "double" else values


def holds(value: Any, target: str, rounding: str) -> bool:
    """Whether a dtype can hold the value, by the rules that the options page gives."""
    if target[0] in "UI":
        limits = np.iinfo(NUMPY_TYPES[target])
        return bool(np.isfinite(value)) and limits.min <= int(value) <= limits.max
    if not np.isfinite(value) or target == "F64":
        return True
    if target in HALVES and rounding == "truncate":
        return abs(int(value)) < HALVES[target]
    with np.errstate(over="ignore"):
        return bool(np.isfinite(value.astype(NUMPY_TYPES[target])))


def expected(values: np.ndarray[Any, Any], target: str, rounding: str) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = values.astype(NUMPY_TYPES[target])
        if target not in HALVES or rounding == "nearest_even":
            return nearest
        # In Python's numbers, which compare exactly.
        past = [abs(number(n)) > abs(number(v)) for n, v in zip(nearest, values, strict=True)]
        return np.where(past, (nearest.view(np.uint16) - 1).view(nearest.dtype), nearest)


def number(value: Any) -> int | float:
    return int(value) if isinstance(value, np.integer) else float(value)


def assert_same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], what: str) -> None:
    """The same bits, but that any NaN is as good as another."""
    assert found.dtype == wanted.dtype
    is_nan = wanted != wanted
    np.testing.assert_array_equal(found != found, is_nan, what)
    assert found[~is_nan].tobytes() == wanted[~is_nan].tobytes(), what


FORMS = ["array", "nested", "single", "vector"]


def cells(input_type: str, rounding: str) -> dict[str, tuple[str, str, np.ndarray[Any, Any]]]:
    """By column: the form, the dtype to become, and the values that it holds."""
    values = numbers(input_type)
    columns = {}
    for target in TARGETS:
        held = np.array([value for value in values if holds(value, target, rounding)], values.dtype)
        for form in FORMS if input_type == "double" else FORMS[:-1]:
            columns[f"{form} {target}"] = (form, target, held[-1:] if form == "single" else held)
    return columns


def cell(form: str, values: np.ndarray[Any, Any]) -> Any:
    listed = values.tolist()
    return {"array": listed, "nested": [listed, listed], "single": listed[0], "vector": Vectors.dense(listed)}[form]


def spark_type(form: str, input_type: str) -> Any:
    element = _parse_datatype_string(input_type)
    return {
        "array": ArrayType(element),
        "nested": ArrayType(ArrayType(element)),
        "single": element,
        "vector": VectorUDT(),
    }[form]


@pytest.mark.parametrize("rounding", ["truncate", "nearest_even"])
@pytest.mark.parametrize("input_type", INPUTS)
def test_all_dtypes_from_every_input_type(spark: SparkSession, path: Path, input_type: str, rounding: str) -> None:
    columns = cells(input_type, rounding)
    schema = StructType([StructField(name, spark_type(form, input_type)) for name, (form, _, _) in columns.items()])
    row = tuple(cell(form, values) for form, _, values in columns.values())
    df = spark.createDataFrame([row], schema).coalesce(1)
    dtypes = json.dumps({name: target for name, (_, target, _) in columns.items()})
    loaded = load(write(df, path, batch_size=1, dtype=dtypes, rounding=rounding).shard)
    for name, (form, target, values) in columns.items():
        wanted = expected(values, target, rounding)
        shape = {"single": (1,), "nested": (1, 2, len(values))}.get(form, (1, len(values)))
        assert (loaded[name].dtype, loaded[name].shape) == (target, shape)
        for found in loaded[name].array.reshape(-1, len(values)):
            assert_same(found, wanted, f"{input_type} {name} {rounding}")


def refusals(input_type: str, rounding: str) -> dict[str, list[Any]]:
    """By dtype, the values on either side that are the first which it cannot hold."""
    values = [value for value in numbers(input_type) if np.isfinite(value)]
    found = {}
    for target in TARGETS:
        refused = [value for value in values if not holds(value, target, rounding)]
        above = [min(v for v in refused if v > 0)] if any(v > 0 for v in refused) else []
        below = [max(v for v in refused if v < 0)] if any(v < 0 for v in refused) else []
        found[target] = above + below
    return found


# The encoders' own tests have the other types.
@pytest.mark.parametrize("input_type", ["bigint", "double"])
def test_the_first_value_past_a_limit_is_an_error_with_the_value(
    spark: SparkSession, path: Path, input_type: str
) -> None:
    refused = refusals(input_type, "nearest_even")
    for target, value in ((target, value) for target, values in refused.items() for value in values):
        df = frame(spark, f"x array<{input_type}>", (np.array([0, value], value.dtype).tolist(),))
        with pytest.raises(PySparkException, match=rf"`x`.*row 0.*{target} cannot hold .*at index 1") as error:
            write(df, path, batch_size=1, dtype=target, rounding="nearest_even")
        [shown] = re.findall("cannot hold (.*?),", str(error.value))
        assert float(shown) == value
    assert files(path) == {}
