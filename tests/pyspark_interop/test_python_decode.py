"""Rows that `DatasetWriter` wrote, as Spark decodes them: each dtype and kind has its type and its values."""

import datetime
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from safetensors_spark.dataset import DatasetWriter

STRUCT = "struct<data:binary,shape:array<int>,dtype:string>"

# Of each dtype of NumPy: its name in the format, and Spark's type that has all its values.
NUMBERS: dict[str, tuple[Any, str]] = {
    "BOOL": (np.bool_, "boolean"), "I8": (np.int8, "tinyint"), "U8": (np.uint8, "smallint"),
    "I16": (np.int16, "smallint"), "U16": (np.uint16, "int"), "I32": (np.int32, "int"),
    "U32": (np.uint32, "bigint"), "I64": (np.int64, "bigint"), "U64": (np.uint64, STRUCT),
    "C64": (np.complex64, STRUCT),
    "F16": (np.float16, "float"), "BF16": (ml_dtypes.bfloat16, "float"), "F32": (np.float32, "float"),
    "F64": (np.float64, "double"), "F8_E4M3": (ml_dtypes.float8_e4m3fn, "float"),
    "F8_E5M2": (ml_dtypes.float8_e5m2, "float"), "F8_E8M0": (ml_dtypes.float8_e8m0fnu, STRUCT),
}  # fmt: skip

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Column(NamedTuple):
    """What is written, and what Spark has of it."""

    rows: list[Any]
    type: str
    expected: list[Any]
    is_ragged: bool = False


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Elements of all bits that the dtype has."""
    kind, generator = NUMBERS[dtype][0], np.random.default_rng(seed)
    if dtype == "BOOL":
        return generator.integers(0, 2, shape).astype(bool)
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return np.frombuffer(generator.bytes(size), kind).reshape(shape)


def decoded(dtype: str, value: np.ndarray[Any, Any]) -> Any:
    if NUMBERS[dtype][1] == STRUCT:
        return (value.tobytes(), list(value.shape), dtype)
    return (value.astype(np.float32) if value.dtype.kind == "V" or value.dtype == np.float16 else value).tolist()


def numbers(dtype: str, shape: tuple[int, ...], lengths: list[int] | None, rows: int, seed: int) -> Column:
    """A column of numbers: of one shape, or of lengths that differ."""
    shapes = [shape] * rows if lengths is None else [(length, *shape) for length in lengths]
    written = [values(dtype, one, seed + row) for row, one in enumerate(shapes)]
    of_value = NUMBERS[dtype][1]
    depth = 0 if of_value == STRUCT else len(shape) + (lengths is not None)
    kind = "array<" * depth + of_value + ">" * depth
    return Column(written, kind, [decoded(dtype, value) for value in written], lengths is not None)


def times(kind: str, numbers: list[int]) -> Column:
    if kind == "date":
        days = [(EPOCH + datetime.timedelta(n)).date() for n in numbers]
        return Column(days, "date", days)
    instants = [EPOCH + datetime.timedelta(microseconds=n * 1_000_003 * 60) for n in numbers]
    naive = [one.replace(tzinfo=None) for one in instants]
    if kind == "timestamp_ntz":
        return Column(naive, kind, naive)
    return Column(instants, "timestamp", [one.astimezone().replace(tzinfo=None) for one in instants])


def check(spark: SparkSession, path: Path, columns: dict[str, Column], step: int, **options: Any) -> None:
    ragged = [name for name, column in columns.items() if column.is_ragged]
    rows = len(next(iter(columns.values())).rows)
    with DatasetWriter(path, ragged=ragged, **options) as writer:
        for at in range(0, rows, step):
            writer.write({name: column.rows[at : at + step] for name, column in columns.items()})
    found = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert found.dtypes == [(name, column.type) for name, column in columns.items()]
    wrong = [
        name
        for name, column in columns.items()
        if repr([_plain(row[name]) for row in found.select(name).collect()]) != repr(column.expected)
    ]
    assert wrong == []


def _plain(value: Any) -> Any:
    """Structs as tuples, and bytes of all versions of Spark alike."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize("is_ragged", [False, True], ids=["fixed", "ragged"])
def test_every_dtype_has_its_type_and_its_values(spark: SparkSession, tmp_path: Path, is_ragged: bool) -> None:
    lengths = [3, 0, 1, 2, 5] if is_ragged else None
    columns = {
        f"{dtype}_{len(shape)}": numbers(dtype, shape, lengths, 5, 7)
        for dtype in NUMBERS
        for shape in ((), (3,), (2, 2))
    }
    check(spark, tmp_path / "dataset", columns, 2, batch_size=2)


def columns_of(rows: int) -> st.SearchStrategy[list[Column]]:
    shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    lengths = st.lists(st.integers(0, 3), min_size=rows, max_size=rows)
    seeds, dtypes = st.integers(0, 1 << 30), st.sampled_from(sorted(NUMBERS))
    text = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=rows, max_size=rows)
    raw = st.lists(st.binary(max_size=5), min_size=rows, max_size=rows)
    days = st.lists(st.integers(0, 20_000), min_size=rows, max_size=rows)
    column = st.one_of(
        st.builds(numbers, dtypes, shapes, st.none() | lengths, st.just(rows), seeds),
        text.map(lambda one: Column(one, "string", one)),
        raw.map(lambda one: Column(one, "binary", one)),
        st.builds(times, st.sampled_from(["date", "timestamp", "timestamp_ntz"]), days),
    )
    return st.lists(column, min_size=1, max_size=6)


@given(st.integers(1, 7).flatmap(columns_of), st.integers(1, 4), st.sampled_from([1, 2, 3, "auto"]))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_rows_are_decoded_as_they_were_written(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, table: list[Column], step: int, batch_size: Any
) -> None:
    path = tmp_path_factory.mktemp("any") / "dataset"
    check(spark, path, {f"c{number}": one for number, one in enumerate(table)}, step, batch_size=batch_size)


def test_what_arrow_has_is_decoded_to_the_same(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([1, 200], pa.uint8()), "h": pa.array(np.array([0.5, 65504], np.float16)),
            "v": pa.array([[1.5, 2], [3, 4]], pa.list_(pa.float32(), 2)), "t": ["é", ""],
            "r": pa.array([[[1]], []], pa.list_(pa.list_(pa.int16()))), "d": pa.array([1, -1], pa.date32()),
            "k": pa.array(["x", "y"]).dictionary_encode(), "c": pa.array([3.9, -1.5]),
        }
    )  # fmt: skip
    with DatasetWriter(tmp_path / "dataset", batch_size=9, ragged=["r"], dtype={"c": "F16", "n": "I32"}) as writer:
        writer.write(table)
    found = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(tmp_path / "dataset"))
    assert dict(found.dtypes) == {
        "n": "smallint", "h": "float", "v": "array<float>", "t": "string", "r": "array<array<smallint>>",
        "d": "date", "k": "string", "c": "double",
    }  # fmt: skip
    assert [tuple(row) for row in found.collect()] == [
        (1, 0.5, [1.5, 2], "é", [[1]], datetime.date(1970, 1, 2), "x", 3.8984375),
        (200, 65504, [3, 4], "", [], datetime.date(1969, 12, 31), "y", -1.5),
    ]
