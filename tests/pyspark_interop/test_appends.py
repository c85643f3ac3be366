"""Appends of what cannot stand beside the dataset that is there: refused before any job, naming both."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_io import MANIFEST, assert_says, error_of, explain_insert, frame, listing, no_job, write

ROW = ("x array<int>, k string", [([1], "a")])

BATCH = {"batch_size": 1, "columns": "x"}
KEYED = {"name_col": "k"}

# The options of the first write, schema and options of the append, and what the message must say.
REFUSED: dict[str, tuple[dict[str, Any], str, dict[str, Any], list[str]]] = {
    "batch to key-value": (KEYED, "x array<int>", {"batch_size": 1}, ["mode", "key_value", "batch"]),
    "key-value to batch": (BATCH, "x array<int>, k string", KEYED, ["mode", "batch", "key_value"]),
    "another dtype by key": (KEYED, "x array<float>, k string", KEYED, ["`x`", "I32", "F32"]),
    "another dtype by option": (BATCH, "x array<int>", {"batch_size": 1, "dtype": "U8"}, ["`x`", "I32", "U8"]),
    "another column by key": (KEYED, "y array<int>, k string", KEYED, ["columns x,", "with y"]),
    "a further column": (BATCH, "x array<int>, y array<int>", {"batch_size": 1}, ["columns x,", "with x, y"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_append_of_another_kind_is_refused_before_any_job(spark: SparkSession, path: Path, case: str) -> None:
    first, schema, options, words = REFUSED[case]
    write(frame(spark, ROW[0], *ROW[1]), path, **first)
    before = listing(path)
    rows = spark.createDataFrame([], schema)
    with no_job(spark), pytest.raises(AnalysisException) as error:
        write(rows, path, **options)
    assert_says(str(error.value), str(path), *words)
    assert_says(explain_insert(rows, path, **options), str(path), *words)
    assert listing(path) == before


# What the dataset has, the rows and options of an append, and what the message must say.
REMEDIES: dict[str, tuple[str, str, str, list[str], list[str]]] = {
    "another length": (
        "array(1, 2)",
        "array(1, 2, 3)",
        "",
        ["I32 [3]", "dataset have I32 [2]", "Make the rows I32 [2] too", "overwrite", "`ragged`"],
        ["or write all of them"],
    ),
    "another length by option": (
        "array(1, 2)",
        "array(1, 2, 3)",
        '{"x": [3]}',
        ["I32 [2]", "with I32 [3]", "Make the rows I32 [2] too", "overwrite", "`ragged`"],
        ["or write all of them"],
    ),
    "another dtype": ("array(1F)", "array(1D)", "", ["as F32 [1]", "F64", "Cast", "F32", "`dtype`", "overwrite"], []),
    "more dimensions": ("array(1)", "array(array(1))", "", ["I32 [1]", "I32 [1, 1]", "overwrite"], ["`ragged`"]),
}


@pytest.mark.parametrize("case", REMEDIES)
def test_rows_unlike_the_dataset_s_say_what_can_be_done(spark: SparkSession, path: Path, case: str) -> None:
    there, here, shapes, words, others = REMEDIES[case]
    write(spark.sql(f"SELECT {there} AS x"), path, batch_size=1)
    options = {"shapes": shapes} if shapes else {}
    message = error_of(partial(write, spark.sql(f"SELECT {here} AS x"), path, batch_size=1, **options))
    assert_says(message, *words)
    assert [other for other in others if other in message] == []


@pytest.mark.short
def test_nothing_is_appended_to_rows_of_different_shapes(spark: SparkSession, path: Path) -> None:
    """As older versions let them be written: their manifests have no shape then."""
    dataset = write(frame(spark, "x array<int>", ([1, 2],)), path, batch_size=1)
    dataset.manifest["schema"][0]["shape"] = None
    (path / MANIFEST).write_text(json.dumps(dataset.manifest))
    before = listing(path)
    for row in ([1, 2], [1, 2, 3]):
        rows = frame(spark, "x array<int>", (row,))
        with no_job(spark):
            message = error_of(partial(write, rows, path, batch_size=1))
        assert_says(message, "`x`", "no shape", f"`safetensors-spark verify file:{path}`", "another directory")
    assert listing(path) == before
    assert write(frame(spark, "x array<int>", ([1],)), path, mode="overwrite", batch_size=1).samples == [1]


def test_overwrite_may_change_mode_columns_and_dtypes(spark: SparkSession, path: Path) -> None:
    write(frame(spark, *ROW[:1], *ROW[1]), path, **KEYED)
    dataset = write(frame(spark, "y array<float>", ([1.5],)), path, mode="overwrite", batch_size=1)
    assert (dataset.manifest["mode"], [c["name"] for c in dataset.manifest["schema"]]) == ("batch", ["y"])


def test_keys_of_an_earlier_append_are_an_error_that_leaves_the_dataset_exactly(
    spark: SparkSession, path: Path
) -> None:
    for first in (0, 10):
        write(spark.range(first, first + 10, 1, 2).selectExpr("id", "array(id) AS x"), path, name_col="id",
              generate_index=str(first == 0))  # fmt: skip
    before = listing(path)
    again = spark.range(25, 4, -1, 1).selectExpr("id", "array(id) AS x")
    for duplicates in ("fail", "lastWin"):
        options: dict[str, Any] = {"name_col": "id", "duplicatesStrategy": duplicates}
        message = error_of(partial(write, again, path, **options))
        assert_says(message, "two shards", "unique")
        assert listing(path) == before
