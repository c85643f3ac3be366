"""Options of a write in the mode, for the cells and with the names that no other test has."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType, _parse_datatype_string

from official import load, verdicts
from spark_io import assert_says, error_of, frame, write

# Names that mean something to SQL, to JSON or to the options themselves.
NAMES = ["a.b", "a b", "it's", 'the "q"', "back`tick", "back\\slash", "é 😀", "UPPER"]


@pytest.mark.parametrize("form", ["all", "list", "JSON"])
def test_columns_have_any_names(spark: SparkSession, path: Path, form: str) -> None:
    quoted = ["`" + name.replace("`", "``") + "`" for name in NAMES]
    df = frame(spark, ", ".join(f"{name} array<int>" for name in quoted), tuple([n] for n in range(len(NAMES))))
    options = {"all": {}, "list": {"columns": ", ".join(NAMES)}, "JSON": {"columns": json.dumps(NAMES)}}[form]
    loaded = load(write(df, path, batch_size=1, **options).shard)
    assert {name: tensor.array.item() for name, tensor in loaded.items()} == {name: n for n, name in enumerate(NAMES)}


def test_shapes_dtype_and_metadata_by_any_name_and_by_key(spark: SparkSession, path: Path) -> None:
    df = frame(spark, 'k string, `a.b` array<int>, `it\'s "c"` array<float>', ("r", [1, 2, 3, 4], [0.5]))
    dataset = write(
        df,
        path,
        name_col="k",
        kv_separator=" ",
        shapes=json.dumps({"a.b": [2, 2], 'it\'s "c"': []}),
        dtype=json.dumps({"a.b": "U8", 'it\'s "c"': "BF16"}),
        metadata=json.dumps({"by": "é"}),
    )
    [verdict] = verdicts([dataset.shard])
    assert {name: (t.dtype, t.shape, t.array.tolist()) for name, t in verdict.tensors.items()} == {
        "r a.b": ("U8", (2, 2), [[1, 2], [3, 4]]),
        'r it\'s "c"': ("BF16", (), 0.5),
    }
    assert verdict.metadata == {"by": "é"}


def test_one_dtype_for_all_keys(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "k string, x array<float>, y int", ("r", [1.5], 2))
    loaded = load(write(df, path, name_col="k", dtype="F64").shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        "r__x": ("F64", [1.5]),
        "r__y": ("F64", 2.0),
    }


@pytest.mark.parametrize("name", [" k", "k.1", "k`2", "K"])
def test_name_column_has_any_name(spark: SparkSession, path: Path, name: str) -> None:
    column = "`" + name.replace("`", "``") + "`"
    dataset = write(frame(spark, f"{column} string, x int", ("a", 1)), path, name_col=name)
    assert load(dataset.shard)["a"].array.tolist() == 1


@pytest.mark.parametrize("separator", ["", " ", "\t", ",", "😀"])
def test_separator_is_taken_as_it_is(spark: SparkSession, path: Path, separator: str) -> None:
    dataset = write(frame(spark, "k string, x int, y int", ("a", 1, 2)), path, name_col="k", kv_separator=separator)
    assert set(load(dataset.shard)) == {f"a{separator}x", f"a{separator}y"}


def test_every_form_of_a_cell_by_key(spark: SparkSession, path: Path) -> None:
    schema = _parse_datatype_string("k string, n array<array<smallint>>, s double")
    assert isinstance(schema, StructType)
    schema.add("v", VectorUDT())
    rows = [
        ("a", [[1, 2, 3], [4, 5, 6]], -0.5, Vectors.dense(0.5, 0.0)),
        ("b", [[7], [8]], 1e300, Vectors.sparse(3, {1: 2.5})),
    ]
    loaded = load(write(spark.createDataFrame(rows, schema).coalesce(1), path, name_col="k").shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        "a__v": ("F64", [0.5, 0.0]),
        "a__n": ("I16", [[1, 2, 3], [4, 5, 6]]),
        "a__s": ("F64", -0.5),
        "b__v": ("F64", [0.0, 2.5, 0.0]),
        "b__n": ("I16", [[7], [8]]),
        "b__s": ("F64", 1e300),
    }


def test_duplicates_fail_unless_told_otherwise(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "k string, x array<int>", ("a", [1]), ("b", [2]), ("a", [3]))
    told: list[dict[str, Any]] = [{}, {"duplicatesStrategy": "fail"}, {"duplicatesstrategy": "FAIL"}]
    for options in told:
        message = error_of(partial(write, df, path, name_col="k", **options))
        assert_says(message, "`x`", "row 2", "key `a`", "lastWin")


def test_last_of_equal_keys_has_its_own_dtype_and_shape(spark: SparkSession, path: Path) -> None:
    numbers = frame(spark, "k string, v float", *((f"{n % 50}", float(n)) for n in range(150)))
    # The last of a key is of another dtype, and so lies elsewhere, than those before.
    dtype = "CASE WHEN v < 50 THEN 'F32' WHEN v < 100 THEN 'F16' ELSE 'F64' END"
    tensor = "CASE {} WHEN 'F32' THEN {} WHEN 'F16' THEN {} ELSE {} END".format(
        dtype, *(f"arr_to_st(array_repeat(v, {n}), array({n}), '{d}')" for n, d in ((3, "F32"), (5, "F16"), (2, "F64")))
    )
    df = numbers.selectExpr("k", f"{tensor} AS x")
    dataset = write(df, path, name_col="k", duplicatesStrategy="lastWin", generate_index="true")
    loaded = load(dataset.shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        str(n): ("F64", [100.0 + n] * 2) for n in range(50)
    }
    assert dataset.samples == [50]


@pytest.mark.parametrize(("strategy", "samples"), [("write", [4, 1, 4, 1]), ("drop", [4, 4]), ("pad", [4, 1, 4, 1])])
def test_tail_is_of_each_task(spark: SparkSession, path: Path, strategy: str, samples: list[int]) -> None:
    df = spark.range(0, 10, 1, 2).selectExpr("cast(id + 1 AS smallint) AS x")
    dataset = write(df, path, batch_size=4, tail_strategy=strategy)
    assert (dataset.samples, dataset.manifest["total_samples"]) == (samples, sum(samples))
    stacked = [load(shard)["x"].array for shard in dataset.shards]
    tail = {"write": [5], "drop": [], "pad": [5, 0, 0, 0]}[strategy]
    np.testing.assert_array_equal(np.concatenate(stacked[: len(stacked) // 2]), [1, 2, 3, 4, *tail])
