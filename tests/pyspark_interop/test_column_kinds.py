"""Rows of different lengths, text, bytes, booleans and times: written by Spark, loaded by the official library."""

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from safetensors.numpy import load_file, save

from official import NUMPY_TYPES
from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import inspect, verify
from spark_io import Dataset, assert_says, error_of, frame, listing, no_job, write

Array = np.ndarray[Any, Any]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
DAY = datetime.date(1970, 1, 1)


def offsets(lengths: list[int]) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def text_arrays(name: str, rows: list[bytes]) -> dict[str, Array]:
    return {
        name: np.frombuffer(b"".join(rows), np.uint8),
        f"{name}.offsets": offsets([len(row) for row in rows]),
    }


def official(arrays: dict[str, Array], kinds: dict[str, str]) -> bytes:
    """What the official library writes for these arrays, with the kinds of the columns as metadata."""
    named = json.dumps(kinds, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return save(arrays, metadata={"column_kinds": named} if kinds else None)


def write_kinds(spark: SparkSession, path: Path, schema: str, *rows: tuple[Any, ...], **options: Any) -> Dataset:
    given: dict[str, Any] = {"batch_size": len(rows), "metadata": "{}"}
    return write(frame(spark, schema, *rows), path, **(given | options))


@pytest.mark.short
def test_sequences_text_and_bytes(spark: SparkSession, path: Path) -> None:
    rows = [([1, 2, 3], "née 😀", b"\xff\xd8", 1), ([], "", b"", 2), ([4], "plain", b"\0", 3)]
    dataset = write_kinds(spark, path, "ids array<bigint>, t string, raw binary, n int", *rows, ragged="ids")
    arrays = {
        "ids": np.array([1, 2, 3, 4]),
        "ids.offsets": np.array([0, 3, 3, 4]),
        **text_arrays("t", [row[1].encode() for row in rows]),
        **text_arrays("raw", [row[2] for row in rows]),
        "n": np.array([1, 2, 3], np.int32),
    }
    assert dataset.shard.read_bytes() == official(arrays, {"ids": "ragged", "raw": "binary", "t": "text"})
    assert dataset.manifest["format_version"] == "2.0"
    assert dataset.manifest["schema"] == [
        {"name": "ids", "dtype": "I64", "shape": [], "kind": "ragged", "type": "array<bigint>"},
        {"name": "t", "dtype": "U8", "shape": [], "kind": "text", "type": "string"},
        {"name": "raw", "dtype": "U8", "shape": [], "kind": "binary", "type": "binary"},
        {"name": "n", "dtype": "I32", "shape": [], "type": "int"},
    ]


@pytest.mark.short
def test_booleans_dates_and_timestamps(spark: SparkSession, path: Path) -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=datetime.timezone.utc)
    rows = [
        (True, [True, False], DAY, moment, moment.replace(tzinfo=None)),
        (False, [False, False], datetime.date(1899, 12, 31), EPOCH, datetime.datetime(1900, 1, 1)),
    ]
    schema = "ok boolean, mask array<boolean>, d date, ts timestamp, ntz timestamp_ntz"
    dataset = write_kinds(spark, path, schema, *rows)
    micros = datetime.timedelta(microseconds=1)
    arrays = {
        "ok": np.array([True, False]),
        "mask": np.array([[True, False], [False, False]]),
        "d": np.array([0, (rows[1][2] - DAY).days], np.int32),
        "ts": np.array([(moment - EPOCH) // micros, 0]),
        "ntz": np.array([(row[4] - EPOCH.replace(tzinfo=None)) // micros for row in rows]),
    }
    kinds = {"d": "date", "ntz": "timestamp_ntz", "ts": "timestamp"}
    assert dataset.shard.read_bytes() == official(arrays, kinds)


def test_fixed_columns_alone_have_no_kinds(spark: SparkSession, path: Path) -> None:
    dataset = write_kinds(spark, path, "x array<float>, ok boolean", ([1.5], True))
    assert dataset.shard.read_bytes() == official({"x": np.array([[1.5]], np.float32), "ok": np.array([True])}, {})
    assert dataset.manifest["format_version"] == "1.3"
    assert [column["type"] for column in dataset.manifest["schema"]] == ["array<float>", "boolean"]


def test_inspect_and_verify_know_kinds(spark: SparkSession, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[Any, ...]] = [("ab", [[1, 2]], 1), ("", [], 2), ("c", [[3, 4]], 3)]
    dataset = write_kinds(
        spark, path, "t string, v array<array<int>>, n int", *rows, batch_size=2, ragged="v", generate_index="true"
    )
    assert verify(path).faults == []
    assert inspect(path).to_dict()["columns"] == dataset.manifest["schema"]
    assert main(["inspect", str(path)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["v", "I32", "[?,", "2]", "ragged"] in shown
    assert ["t", "U8", "[?]", "text"] in shown


def test_ragged_arrays_of_arrays_and_tensor_structs(spark: SparkSession, path: Path) -> None:
    def struct(values: Array) -> tuple[bytes, list[int], str]:
        return values.tobytes(), list(values.shape), "F16"

    points = [np.arange(6.0).reshape(3, 2), np.zeros((0, 2)), np.ones((1, 2))]
    frames = [np.full((n, 2, 1), n, np.float16) for n in (2, 1, 0)]
    rows = [(p.tolist(), struct(f)) for p, f in zip(points, frames, strict=True)]
    schema = "points array<array<double>>, frames struct<data:binary,shape:array<int>,dtype:string>"
    dataset = write_kinds(spark, path, schema, *rows, ragged='["points", "frames"]')
    arrays = {
        "points": np.concatenate(points),
        "points.offsets": offsets([3, 0, 1]),
        "frames": np.concatenate(frames),
        "frames.offsets": offsets([2, 1, 0]),
    }
    assert dataset.shard.read_bytes() == official(arrays, {"frames": "ragged", "points": "ragged"})
    assert [column["shape"] for column in dataset.manifest["schema"]] == [[2], [2, 1]]


@pytest.mark.parametrize(
    ("tail", "expected", "samples"),
    [
        ("write", [[0, 1, 3], [0, 3]], [2, 1]),
        ("drop", [[0, 1, 3]], [2]),
        ("pad", [[0, 1, 3], [0, 3, 3]], [2, 1]),
    ],
)
def test_tails_of_ragged_columns(
    spark: SparkSession, path: Path, tail: str, expected: list[list[int]], samples: list[int]
) -> None:
    rows = [("a", 1), ("bc", 2), ("def", 3)]
    dataset = write_kinds(spark, path, "t string, n int", *rows, batch_size=2, tail_strategy=tail)
    assert [load_file(shard)["t.offsets"].tolist() for shard in dataset.shards] == expected
    assert dataset.samples == samples


def test_shards_are_filled_up_to_the_target_size(spark: SparkSession, path: Path) -> None:
    df = spark.range(0, 21, 1, 1).selectExpr("array_repeat(id, 1 << 20) AS x", "repeat('a', 1 << 20) AS t")
    dataset = write(df, path, batch_size="auto", target_shard_size_mb=50)
    # A row has 9 MB.
    assert dataset.samples == [5, 5, 5, 5, 1]
    assert all(len(shard.read_bytes()) < 50_000_000 for shard in dataset.shards)
    assert [load_file(shard)["x"][0, 0] for shard in dataset.shards] == [0, 5, 10, 15, 20]


def test_shards_of_empty_rows(spark: SparkSession, path: Path) -> None:
    rows: list[tuple[Any, ...]] = [("", []), ("", []), ("a", [[1.0, 2.0]])]
    dataset = write_kinds(spark, path, "t string, v array<array<float>>", *rows, batch_size=2, ragged="v")
    first, second = map(load_file, dataset.shards)
    assert (first["t"].shape, first["v"].shape, first["v.offsets"].tolist()) == ((0,), (0, 0), [0, 0, 0])
    assert (second["v"].tolist(), second["v.offsets"].tolist()) == ([[1.0, 2.0]], [0, 1])
    assert dataset.manifest["schema"][1]["shape"] == [2]


def test_a_write_without_rows_records_kinds(spark: SparkSession, path: Path) -> None:
    manifest = write(frame(spark, "t string, d date, v array<float>"), path, batch_size=1, ragged="v").manifest
    assert [(column["kind"], column["dtype"], column["shape"]) for column in manifest["schema"]] == [
        ("text", "U8", []),
        ("date", "I32", []),
        ("ragged", "F32", []),
    ]


# Schema and rows, options, and what the message must say; rows are counted from 0.
ROWS: dict[str, tuple[str, list[Any], dict[str, Any], list[str]]] = {
    "other dimensions that differ": (
        "x array<array<int>>",
        [[[1, 2]], [], [[1, 2, 3]]],
        {"ragged": "x"},
        ["`x`", "row 2", "[1, 3]", "[?, 2]", "first dimension"],
    ),
    "arrays that differ within a row": (
        "x array<array<int>>",
        [[[1, 2], [3]]],
        {"ragged": "x"},
        ["`x`", "row 0", "2", "1"],
    ),
    "a struct without dimensions": (
        "x struct<data:binary,shape:array<int>,dtype:string>",
        [(b"\1", [], "U8")],
        {"ragged": "x"},
        ["`x`", "row 0", "U8 []", "first dimension"],
    ),
    "structs of different dtypes": (
        "x struct<data:binary,shape:array<int>,dtype:string>",
        [(b"\1", [1], "U8"), (b"\1", [1], "I8")],
        {"ragged": "x"},
        ["`x`", "row 1", "I8 [1]", "U8 [?]"],
    ),
    "a null": ("x string", ["a", None], {}, ["`x`", "row 1", "null"]),
    "rows of different lengths, not ragged": (
        "x array<int>",
        [[1], [1, 2]],
        {},
        ["`x`", "row 1", "[2]", "[1]", "`ragged`"],
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_refused_rows(spark: SparkSession, path: Path, case: str) -> None:
    schema, rows, options, words = ROWS[case]
    df = frame(spark, schema, *((row,) for row in rows))
    assert_says(error_of(lambda: write(df, path, batch_size=9, **options)), *words)
    assert listing(path) == {}


def test_a_string_that_is_not_utf_8(spark: SparkSession, path: Path) -> None:
    df = spark.sql("SELECT concat('name ', cast(X'61ff62' AS string)) AS t")
    message = error_of(lambda: write(df, path, batch_size=1))
    assert_says(message, "Column `t`, row 0", "`name a\ufffdb`", "UTF-8", "make_valid_utf8", "binary")
    assert listing(path) == {}


def test_an_append_of_another_kind_is_refused(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<int>", ([1, 2],))
    write(df, path, batch_size=1)
    before = listing(path)
    with no_job(spark):
        message = error_of(lambda: write(df, path, batch_size=1, ragged="x"))
    assert_says(message, "column `x` as fixed", "with ragged", "overwrite")
    assert listing(path) == before


def test_text_and_bytes_may_be_named_as_ragged(spark: SparkSession, path: Path) -> None:
    """They are stored so in any case."""
    dataset = write_kinds(spark, path, "x array<int>, t string, raw binary", ([1], "a", b"a"), ragged="x,t,raw")
    assert [column["kind"] for column in dataset.manifest["schema"]] == ["ragged", "text", "binary"]
    assert dataset.manifest["options"]["ragged"] == "x,t,raw"


def test_an_append_is_ragged_where_the_dataset_is(spark: SparkSession, path: Path) -> None:
    schema = "x array<int>, m array<array<int>>"
    write_kinds(spark, path, schema, ([1, 2], [[1, 2]]), ragged='["x", "m"]')
    dataset = write_kinds(spark, path, schema, ([3], []), ([], [[3, 4], [5, 6]]))
    loaded = load_file(dataset.shards[1])
    assert (loaded["x"].tolist(), loaded["x.offsets"].tolist()) == ([3], [0, 1, 1])
    assert (loaded["m"].tolist(), loaded["m.offsets"].tolist()) == ([[3, 4], [5, 6]], [0, 0, 2])
    before = listing(path)
    with no_job(spark):
        shaped = error_of(lambda: write_kinds(spark, path, schema, ([1, 2], [[1]]), shapes='{"x": [2]}'))
        single = error_of(lambda: write_kinds(spark, path, "x int, m array<array<int>>", (1, [[1]])))
    for message in (shaped, single):
        assert_says(message, "column `x` as ragged", "with fixed")
    assert listing(path) == before


def test_an_append_of_other_inner_dimensions_is_refused(spark: SparkSession, path: Path) -> None:
    write_kinds(spark, path, "x array<array<int>>", ([[1, 2]],), ragged="x")
    before = listing(path)
    message = error_of(lambda: write_kinds(spark, path, "x array<array<int>>", ([],), ([[1]],), ragged="x"))
    assert_says(message, "Column `x`, row 1", "I32 [1, 1]", "the rows of the dataset have I32 [?, 2]")
    assert listing(path) == before


KINDS = "ids array<bigint>, v array<array<float>>, t string, raw binary, day date, ts timestamp_ntz, x array<float>"


def test_tensors_are_appended_as_the_kinds_of_the_dataset(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30)
    rows = [
        ([1, 2, 3], [[1.5, 2.5]], "née 😀", b"\xff", DAY, moment, [0.5]),
        ([], [], "", b"", DAY, moment, [1.5]),
    ]
    once = write_kinds(spark, path, KINDS, *rows, ragged="ids,v")
    tensors = spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))
    dataset = write(tensors, path, batch_size=2, metadata="{}")
    first, again = dataset.shards
    assert again.read_bytes() == first.read_bytes()
    assert dataset.manifest["schema"] == once.manifest["schema"]
    assert verify(path).faults == []
    other = write_kinds(spark, tmp_path / "other", "t string, raw binary", ("a", b"a"))
    assert_says(error_of(lambda: write(tensors, other.path, batch_size=2)), "columns raw, t,")


@pytest.mark.parametrize(
    ("column", "tensor", "words"),
    [
        ("x string", ("ff", "1", "U8"), ["`x`", "row 0", "not valid UTF-8"]),
        ("x string", ("61", "1", "I8"), ["`x`", "row 0", "I8 [1]", "U8 [?]"]),
        ("x string", ("6161", "1, 2", "U8"), ["`x`", "row 0", "U8 [1, 2]", "U8 [?]"]),
        ("x binary", ("61", "", "U8"), ["`x`", "row 0", "U8 []", "first dimension"]),
        ("x date", ("61", "", "U8"), ["`x`", "row 0", "U8 []", "I32 []"]),
        ("x timestamp", ("0000000000000000", "1", "I64"), ["`x`", "row 0", "I64 [1]", "I64 []"]),
    ],
)
def test_tensors_unlike_those_of_the_dataset_are_refused(
    spark: SparkSession, path: Path, column: str, tensor: tuple[str, str, str], words: list[str]
) -> None:
    values = {"string": "a", "binary": b"a", "date": DAY, "timestamp": EPOCH}
    write_kinds(spark, path, column, (values[column.split()[1]],))
    before = listing(path)
    data, shape, dtype = tensor
    sql = f"SELECT named_struct('data', X'{data}', 'shape', array({shape}), 'dtype', '{dtype}') AS x"
    rows = spark.sql(sql).selectExpr("CAST(x AS struct<data: binary, shape: array<int>, dtype: string>) AS x")
    assert_says(error_of(lambda: write(rows, path, batch_size=1)), *words)
    assert listing(path) == before


def test_an_append_of_empty_rows_has_the_shape_of_the_dataset(spark: SparkSession, path: Path) -> None:
    write_kinds(spark, path, "x array<array<int>>", ([[1, 2]],), ragged="x")
    dataset = write_kinds(spark, path, "x array<array<int>>", ([],), ragged="x")
    assert load_file(dataset.shards[1])["x"].shape == (0, 2)
    assert dataset.manifest["schema"][0]["shape"] == [2]


def test_an_append_keeps_kinds_and_the_index(spark: SparkSession, path: Path) -> None:
    write_kinds(spark, path, "t string", ("a",), generate_index="true")
    dataset = write_kinds(spark, path, "t string", ("bc",))
    tensors = spark.read.format("safetensors").load(str(path), layout="long")
    assert sorted(row.tensor_key for row in tensors.collect()) == ["t", "t", "t.offsets", "t.offsets"]
    assert tensors.count() == 4
    assert tensors.where("tensor_key = 't.offsets'").count() == 2
    assert dataset.manifest["schema"][0]["kind"] == "text"


@dataclass(frozen=True)
class Column:
    """A column of random rows; of the kind `ragged` or `fixed`, `shape` is that of a value."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    nested: bool

    @property
    def type(self) -> str:
        own = {"text": "string", "binary": "binary", "date": "date", "timestamp": "timestamp_ntz"}
        if self.kind in own:
            return own[self.kind]
        if not self.nested:
            return "struct<data:binary,shape:array<int>,dtype:string>"
        depth = len(self.shape) + (self.kind == "ragged")
        return "array<" * depth + NUMBERS[self.dtype] + ">" * depth

    def row(self, generator: np.random.Generator) -> tuple[Any, Array]:
        """A random cell, and the array that it is."""
        length = int(generator.integers(0, 5))
        if self.kind == "text":
            text = "".join(generator.choice(list("a é😀\0\u2028"), length))
            return text, np.frombuffer(text.encode(), np.uint8)
        if self.kind == "binary":
            content = generator.bytes(length)
            return content, np.frombuffer(content, np.uint8)
        number = int(generator.integers(-40_000, 40_000))
        if self.kind == "date":
            return DAY + datetime.timedelta(days=number // 4), np.array(number // 4, np.int32)
        if self.kind == "timestamp":
            moment = EPOCH.replace(tzinfo=None) + datetime.timedelta(milliseconds=number)
            return moment, np.array(number * 1000, np.int64)
        if self.kind == "ragged" and self.nested and self.shape:
            # Where all rows are empty, arrays of arrays do not say how long the inner ones are.
            length += 1
        values = generator.integers(0, 2, (*((length,) if self.kind == "ragged" else ()), *self.shape))
        array = values.astype(NUMPY_TYPES[self.dtype])
        return array.tolist() if self.nested else (array.tobytes(), list(array.shape), self.dtype), array


NUMBERS = {
    "F32": "float",
    "F64": "double",
    "I8": "tinyint",
    "I16": "smallint",
    "I32": "int",
    "I64": "bigint",
    "BOOL": "boolean",
}
shapes = st.lists(st.sampled_from([1, 2, 3]), max_size=2).map(tuple)
columns = st.one_of(
    st.builds(Column, st.sampled_from(["ragged", "fixed"]), st.sampled_from(sorted(NUMBERS)), shapes, st.booleans()),
    st.builds(
        Column, st.sampled_from(["text", "binary", "date", "timestamp"]), st.just(""), st.just(()), st.just(True)
    ),
)


def expected_shard(table: list[Column], cells: list[list[Array]]) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors of a shard with these rows, by column, and the kinds of the columns."""
    arrays: dict[str, Array] = {}
    for number, (column, rows) in enumerate(zip(table, cells, strict=True)):
        if column.kind in ("fixed", "date", "timestamp"):
            arrays[f"c{number}"] = np.stack(rows)
        else:
            arrays[f"c{number}"] = np.concatenate(rows)
            arrays[f"c{number}.offsets"] = offsets([len(row) for row in rows])
    spark_kinds = {"timestamp": "timestamp_ntz"}
    kinds = {f"c{number}": spark_kinds.get(column.kind, column.kind) for number, column in enumerate(table)}
    return arrays, {name: kind for name, kind in kinds.items() if kind != "fixed"}


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    table=st.lists(columns, min_size=1, max_size=12),
    rows=st.integers(1, 9),
    batch=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_rows_are_the_official_library_s_bytes(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table: list[Column],
    rows: int,
    batch: int,
    seed: int,
) -> None:
    generator = np.random.default_rng(seed)
    cells = [[column.row(generator) for column in table] for _ in range(rows)]
    schema = ", ".join(f"c{number} {column.type}" for number, column in enumerate(table))
    ragged = json.dumps([f"c{number}" for number, column in enumerate(table) if column.kind == "ragged"])
    dataset = write_kinds(
        spark,
        tmp_path_factory.mktemp("kinds") / "dataset",
        schema,
        *(tuple(cell for cell, _ in row) for row in cells),
        batch_size=batch,
        ragged=ragged,
    )
    assert dataset.samples == [min(batch, rows - begin) for begin in range(0, rows, batch)]
    for shard, begin in zip(dataset.shards, range(0, rows, batch), strict=True):
        part = cells[begin : begin + batch]
        arrays, kinds = expected_shard(table, [[row[number][1] for row in part] for number in range(len(table))])
        assert shard.read_bytes() == official(arrays, kinds)
