"""What a write refuses: wrong schemas and options before any job, wrong rows without a trace."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from official import Tensor
from spark_io import assert_says, error_of, explain_insert, files, frame, listing, no_job, tensors_frame, write


def short_cases(cases: Iterable[str], short: set[str]) -> list[Any]:
    """The cases as parameters; these run on every Spark version."""
    return [pytest.param(case, marks=[pytest.mark.short] if case in short else []) for case in cases]


# Schema, options, and what the message must say: what is wrong, and the way out.
EAGER: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "neither naming strategy": ("x array<int>", {}, ["batch_size", "name_col"]),
    "both naming strategies": (
        "x array<int>, k string",
        {"batch_size": 1, "name_col": "k"},
        ["batch_size", "name_col"],
    ),
    "batch size of zero": ("x array<int>", {"batch_size": 0}, ["batch_size", "0"]),
    "batch size that is no number": ("x array<int>", {"batch_size": "many"}, ["batch_size", "many"]),
    "array of strings": ("x array<string>", {"batch_size": 1}, ["`x`", "string", "columns"]),
    "string column by key": (
        "x array<int>, k string, note string",
        {"name_col": "k"},
        ["`note`", "string", "batch_size", "columns"],
    ),
    "ragged numbers": ("x int", {"batch_size": 1, "ragged": "x"}, ["ragged", "`x`", "int"]),
    "ragged column that is not there": ("x array<int>", {"batch_size": 1, "ragged": "y"}, ["ragged", "`y`", "x"]),
    "ragged by key": ("k string, x array<int>", {"name_col": "k", "ragged": "x"}, ["ragged", "name_col"]),
    "name of the offsets of another column": (
        "s string, `s.offsets` array<bigint>",
        {"batch_size": 1},
        ["`s.offsets`", "offsets of column `s`", "Rename"],
    ),
    "struct of other fields": (
        "x struct<data:binary,shape:array<int>>",
        {"batch_size": 1},
        ["`x`", "columns"],
    ),
    "unknown dtype": ("x array<int>", {"batch_size": 1, "dtype": "F23"}, ["dtype", "F23", "F32"]),
    "dtype in small letters": ("x array<int>", {"batch_size": 1, "dtype": "f32"}, ["f32", "F32"]),
    "dtype of a column that is not there": (
        "x array<int>",
        {"batch_size": 1, "dtype": '{"y":"F32"}'},
        ["dtype", "`y`", "x"],
    ),
    "dtype that arrays cannot take": (
        "x array<int>",
        {"batch_size": 1, "dtype": "F8_E8M0"},
        ["F8_E8M0", "`x`"],
    ),
    "unknown option": ("x array<int>", {"batch_sise": 1}, ["batch_sise", "batch_size"]),
    "unknown tail strategy": (
        "x array<int>",
        {"batch_size": 1, "tail_strategy": "keep"},
        ["tail_strategy", "keep", "pad"],
    ),
    "unknown rounding": (
        "x array<float>",
        {"batch_size": 1, "rounding": "up"},
        ["rounding", "up", "nearest_even"],
    ),
    "shapes that are no JSON": ("x array<int>", {"batch_size": 1, "shapes": "[2"}, ["shapes", "[2"]),
    "shapes of a column that is not there": (
        "x array<int>",
        {"batch_size": 1, "shapes": '{"y":[2]}'},
        ["`y`", "shapes"],
    ),
    "negative dimension": ("x array<int>", {"batch_size": 1, "shapes": '{"x":[-2]}'}, ["shapes", "-2"]),
    "column that is not there": ("x array<int>", {"batch_size": 1, "columns": "x,y"}, ["columns", "`y`"]),
    "metadata that is no object of strings": (
        "x array<int>",
        {"batch_size": 1, "metadata": '{"a":1}'},
        ["metadata", "a"],
    ),
    "tensor by a forbidden name": ("__metadata__ array<int>", {"batch_size": 1}, ["__metadata__"]),
    "names that differ in case alone": ("x array<int>, X array<int>", {"batch_size": 1}, ["`x`", "`X`"]),
    "columns that are none": ("x array<int>", {"batch_size": 1, "columns": "[]"}, ["no column"]),
    "column twice": ("x array<int>", {"batch_size": 1, "columns": "x, x"}, ["`x`"]),
    "columns that are no JSON": ("x array<int>", {"batch_size": 1, "columns": '["x"'}, ["columns", '["x"']),
    "vector of a date": ("x array<date>", {"batch_size": 1}, ["`x`", "array<date>", "columns"]),
    "decimals": ("x array<decimal(9,2)>", {"batch_size": 1}, ["`x`", "decimal(9,2)", "cast"]),
    "name column that is not there": ("x array<int>", {"name_col": "k"}, ["name_col", "`k`", "x"]),
    "name column of floats": ("x array<int>, k float", {"name_col": "k"}, ["name_col", "`k`", "float", "Cast"]),
    "nothing but the name column": ("k string", {"name_col": "k"}, ["no column"]),
    "shards too small": (
        "x array<int>, k string",
        {"name_col": "k", "target_shard_size_mb": 49},
        ["target_shard_size_mb", "49", "50"],
    ),
    "shards too large": (
        "x array<int>, k string",
        {"name_col": "k", "target_shard_size_mb": 1001},
        ["target_shard_size_mb", "1001", "1000"],
    ),
    "unknown strategy for duplicates": (
        "x array<int>, k string",
        {"name_col": "k", "duplicatesStrategy": "firstWin"},
        ["duplicatesStrategy", "firstWin", "fail", "lastWin"],
    ),
    "index or not": (
        "x array<int>, k string",
        {"name_col": "k", "generate_index": "perhaps"},
        ["generate_index", "perhaps", "true", "false"],
    ),
}


# One for each kind of rule: a missing option, a type, an unknown option, and names that Spark looks at itself.
SHORT_EAGER = {"neither naming strategy", "string column by key", "unknown option", "names that differ in case alone"}


@pytest.mark.parametrize("case", short_cases(EAGER, SHORT_EAGER))
def test_refused_before_any_job(spark: SparkSession, path: Path, case: str) -> None:
    schema, options, words = EAGER[case]
    df = spark.createDataFrame([], schema)
    with no_job(spark), pytest.raises(AnalysisException) as error:
        write(df, path, **options)
    assert_says(str(error.value), *words)
    assert not path.exists()


# Spark has no table of such columns.
NO_TABLE = {"names that differ in case alone"}


@pytest.mark.parametrize("case", [case for case in EAGER if case not in NO_TABLE])
def test_refused_in_explain_too(spark: SparkSession, path: Path, case: str) -> None:
    schema, options, words = EAGER[case]
    plan = explain_insert(spark.createDataFrame([], schema), path, **options)
    assert_says(plan, "Error occurred during query planning", *words)
    assert not path.exists()


def test_explain_of_a_sound_write_does_nothing(spark: SparkSession, path: Path) -> None:
    assert_says(explain_insert(spark.sql("SELECT array(1) AS x"), path, batch_size=1), "AppendData", str(path))
    assert not path.exists()


def array(element: str, *rows: Any) -> tuple[str, list[tuple[Any]]]:
    return f"x array<{element}>", [(row,) for row in rows]


# Schema and rows, options, and what the message must say; rows are counted from 0.
ROWS: dict[str, tuple[tuple[str, list[tuple[Any]]], dict[str, Any], list[str]]] = {
    "ragged arrays": (array("int", [1, 2], [1, 2, 3]), {}, ["`x`", "row 1", "[3]", "[2]"]),
    "null array": (array("int", [1], None), {}, ["`x`", "row 1", "null"]),
    "null element": (array("int", [1, 2], [3, None]), {}, ["`x`", "row 1", "null"]),
    "int too large": (array("int", [1], [300]), {"dtype": "U8"}, ["`x`", "row 1", "300", "U8"]),
    "int too small": (array("int", [-1]), {"dtype": "U64"}, ["`x`", "row 0", "-1", "U64"]),
    "bigint too large": (array("bigint", [2**40]), {"dtype": "I32"}, ["`x`", "row 0", str(2**40), "I32"]),
    "NaN as an integer": (array("float", [float("nan")]), {"dtype": "I32"}, ["`x`", "row 0", "NaN", "I32"]),
    "infinity as an integer": (
        array("double", [float("inf")]),
        {"dtype": "I64"},
        ["`x`", "row 0", "Infinity", "I64"],
    ),
    "float past F16": (array("float", [70000.0]), {"dtype": "F16"}, ["`x`", "row 0", "70000", "F16"]),
    "double past F32": (array("double", [1e300]), {"dtype": "F32"}, ["`x`", "row 0", "1.0E300", "F32"]),
    "shape that does not fit": (
        array("int", [1, 2, 3]),
        {"shapes": '{"x":[2,2]}'},
        ["`x`", "row 0", "3", "[2, 2]"],
    ),
}


# A shape, a null and a value that the dtype cannot hold.
@pytest.mark.parametrize("case", short_cases(ROWS, {"ragged arrays", "null element", "int too large"}))
def test_bad_row_is_named_and_nothing_is_left(spark: SparkSession, path: Path, case: str) -> None:
    (schema, rows), options, words = ROWS[case]
    message = error_of(lambda: write(frame(spark, schema, *rows), path, batch_size=4, **options))
    assert_says(message, *words)
    assert files(path) == {}


# In key-value mode shapes may differ from row to row.
@pytest.mark.parametrize("case", [case for case in ROWS if case != "ragged arrays"])
def test_bad_row_is_named_by_its_key_and_nothing_is_left(spark: SparkSession, path: Path, case: str) -> None:
    (schema, rows), options, words = ROWS[case]
    keyed = frame(spark, f"{schema}, k string", *((*row, f"user {n}") for n, row in enumerate(rows)))
    message = error_of(lambda: write(keyed, path, name_col="k", **options))
    assert_says(message, f"key `user {len(rows) - 1}`", *words)
    assert files(path) == {}


# The first row is sound; the second must be refused.
STRUCTS: dict[str, tuple[Tensor, dict[str, Any], list[str]]] = {
    "another shape": (Tensor("U8", (1, 2), b"ab"), {}, ["`x`", "row 1", "[1, 2]", "[2]"]),
    "another dtype": (Tensor("I8", (2,), b"ab"), {}, ["`x`", "row 1", "I8", "U8"]),
    "unknown dtype": (Tensor("U9", (2,), b"ab"), {}, ["`x`", "row 1", "U9"]),
    "bytes that do not fill the shape": (Tensor("U8", (2,), b"abc"), {}, ["`x`", "row 1", "3", "[2]"]),
    "negative dimension": (Tensor("U8", (-2,), b"ab"), {}, ["`x`", "row 1", "-2"]),
    "elements that fill no byte": (Tensor("F4", (3,), b"ab"), {}, ["`x`", "row 1", "F4", "[3]"]),
}


@pytest.mark.parametrize("case", STRUCTS)
def test_bad_tensor_struct_is_named_and_nothing_is_left(spark: SparkSession, path: Path, case: str) -> None:
    bad, options, words = STRUCTS[case]
    df = tensors_frame(spark, [{"x": Tensor("U8", (2,), b"ab")}, {"x": bad}])
    message = error_of(lambda: write(df, path, batch_size=4, **options))
    assert_says(message, *words)
    assert files(path) == {}


# Key-value mode takes other shapes and dtypes.
@pytest.mark.parametrize("case", [case for case in STRUCTS if not case.startswith("another ")])
def test_bad_tensor_struct_is_named_by_its_key_and_nothing_is_left(spark: SparkSession, path: Path, case: str) -> None:
    bad, options, words = STRUCTS[case]
    df = tensors_frame(spark, [{"x": Tensor("U8", (2,), b"ab")}, {"x": bad}])
    keyed = df.selectExpr("x", "concat('shape ', array_join(x.shape, ' ')) AS k")
    message = error_of(lambda: write(keyed, path, name_col="k", duplicatesStrategy="lastWin", **options))
    assert_says(message, f"key `shape {' '.join(map(str, bad.shape))}`", *words)
    assert files(path) == {}


def test_dtype_option_that_disagrees_with_a_struct_is_refused(spark: SparkSession, path: Path) -> None:
    df = tensors_frame(spark, [{"x": Tensor("U8", (2,), b"ab")}])
    message = error_of(lambda: write(df, path, batch_size=1, dtype="F32"))
    assert_says(message, "`x`", "U8", "F32")
    assert files(path) == {}


def test_shapes_option_that_disagrees_with_a_struct_is_refused(spark: SparkSession, path: Path) -> None:
    df = tensors_frame(spark, [{"x": Tensor("U8", (2,), b"ab")}])
    message = error_of(lambda: write(df, path, batch_size=1, shapes='{"x": [2, 2]}'))
    assert_says(message, "`x`", "[2, 2]", "[2]")
    assert files(path) == {}


# What the last of ten rows has, by `id`, and what the message must say.
FAILING: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "null": ({"batch_size": 1}, ["if(id < 9, array(1), null) AS x"], "null"),
    "null element": ({"batch_size": 1}, ["array(if(id < 9, 1, null)) AS x"], "element 0 is null"),
    "ragged shape": ({"batch_size": 5}, ["array_repeat(1, if(id < 9, 1, 3)) AS x"], "[3]"),
    "value": ({"batch_size": 1, "dtype": "I8"}, ["array(if(id < 9, 1, 162)) AS x"], "162"),
    "null by key": ({"name_col": "k"}, ["if(id < 9, array(1), null) AS x", "id AS k"], "key `9`"),
    "null key": ({"name_col": "k"}, ["array(1) AS x", "if(id < 9, id, null) AS k"], "null"),
    "repeated key": ({"name_col": "k"}, ["array(1) AS x", "if(id < 9, id, 8) AS k"], "`8`"),
}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("case", short_cases(FAILING, {"null"}))
def test_failed_write_leaves_the_directory_as_it_was(spark: SparkSession, path: Path, case: str, mode: str) -> None:
    options, columns, word = FAILING[case]
    write(frame(spark, "x array<int>, k int", ([1], -1)), path, columns="x", **options)
    before = listing(path)
    # One task: where others run, they may leave empty directories when they end after the job.
    failing = spark.range(0, 10, 1, 1).selectExpr(*columns)
    assert_says(error_of(lambda: write(failing, path, mode, **options)), word)
    assert listing(path) == before


def test_error_is_about_the_row_and_shows_no_internals(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<int>", (None,))
    message = error_of(lambda: write(df, path, batch_size=1))
    assert "NullPointerException" not in message
    assert "MatchError" not in message
