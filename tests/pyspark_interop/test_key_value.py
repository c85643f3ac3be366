"""Key-value datasets: a tensor for each row, named by a column."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pyspark.sql import SparkSession

from official import BITS, FORMAT, Tensor, load
from spark_io import assert_says, error_of, files, frame, tensors_frame, write


def arrays(path: Path) -> dict[str, list[Any]]:
    return {name: tensor.array.tolist() for name, tensor in load(path).items()}


@pytest.mark.short
def test_keys_name_tensors_of_any_shape(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "user string, emb array<float>", ("a", [1.5, 2.5]), ("ключ 😀", [3.5]), ("", []))
    dataset = write(df, path, name_col="user")
    assert arrays(dataset.shard) == {"a": [1.5, 2.5], "ключ 😀": [3.5], "": []}
    assert (dataset.manifest["mode"], dataset.samples) == ("key_value", [3])
    Draft202012Validator(json.loads((FORMAT / "dataset_manifest.schema.json").read_text())).validate(dataset.manifest)


@pytest.mark.parametrize("key_type", ["tinyint", "smallint", "int", "bigint"])
def test_integers_are_keys(spark: SparkSession, path: Path, key_type: str) -> None:
    df = frame(spark, f"id {key_type}, x array<int>", (-7, [1]), (7, [2]))
    assert arrays(write(df, path, name_col="id").shard) == {"-7": [1], "7": [2]}


@pytest.mark.parametrize(("options", "separator"), [({}, "__"), ({"kv_separator": "/"}, "/")])
def test_several_columns_follow_the_key(
    spark: SparkSession, path: Path, options: dict[str, str], separator: str
) -> None:
    df = frame(spark, "id string, x array<int>, y array<float>", ("a", [1], [1.5]), ("b", [2], [2.5]))
    dataset = write(df, path, name_col="id", **options)
    assert arrays(dataset.shard) == {
        f"a{separator}x": [1],
        f"a{separator}y": [1.5],
        f"b{separator}x": [2],
        f"b{separator}y": [2.5],
    }
    assert dataset.samples == [2]


def test_all_dtypes_in_one_shard(spark: SparkSession, path: Path) -> None:
    tensors = {dtype: Tensor(dtype, (8,), bytes(range(bits))) for dtype, bits in BITS.items()}
    keyed = [{"x": tensor} for tensor in tensors.values()]
    df = tensors_frame(spark, keyed).selectExpr("x", "x.dtype as k")
    assert load(write(df, path, name_col="k", columns="x").shard) == tensors


def test_last_of_equal_keys_wins_where_told(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "k string, x array<int>", ("a", [1, 2, 3]), ("b", [4]), ("a", [5]))
    dataset = write(df, path, name_col="k", duplicatesStrategy="lastWin")
    assert arrays(dataset.shard) == {"a": [5], "b": [4]}
    assert dataset.samples == [2]


COLLIDING = "k string, x__x array<int>, x array<int>", ("k", [1], [2]), ("k__x", [3], [4])


@pytest.mark.parametrize("duplicates", ["fail", "lastWin"])
def test_one_name_for_two_columns_is_an_error_that_names_both(spark: SparkSession, path: Path, duplicates: str) -> None:
    df = frame(spark, *COLLIDING)
    message = error_of(lambda: write(df, path, name_col="k", duplicatesStrategy=duplicates))
    assert_says(message, "`k__x__x`", "key `k` of column `x__x`", "key `k__x` of column `x`", "`kv_separator`")
    assert files(path) == {}


@pytest.mark.parametrize("duplicates", ["fail", "lastWin"])
def test_one_name_for_two_columns_in_two_shards_is_an_error_with_an_index(
    spark: SparkSession, path: Path, duplicates: str
) -> None:
    schema, *rows = COLLIDING
    options = {"name_col": "k", "duplicatesStrategy": duplicates, "generate_index": "true"}
    write(frame(spark, schema, rows[0]), path, **options)
    before = files(path)
    message = error_of(lambda: write(frame(spark, schema, rows[1]), path, **options))
    assert_says(message, "`k__x__x`", "key `k` of column `x__x`", "key `k__x` of column `x`", "two shards")
    assert files(path) == before


def test_columns_whose_names_could_collide_are_written_where_no_name_does(spark: SparkSession, path: Path) -> None:
    df = frame(spark, COLLIDING[0], ("k", [1], [2]), ("m", [3], [4]))
    dataset = write(df, path, name_col="k", duplicatesStrategy="lastWin")
    assert arrays(dataset.shard) == {"k__x__x": [1], "k__x": [2], "m__x__x": [3], "m__x": [4]}


REFUSED: dict[str, tuple[list[tuple[Any, ...]], list[str]]] = {
    "equal keys": ([("a", [1]), ("a", [2])], ["`a`", "duplicatesStrategy", "lastWin"]),
    "null key": ([(None, [1])], ["`k`", "row 0", "null"]),
    "name that the format keeps": ([("__metadata__", [1])], ["`k`", "row 0", "__metadata__"]),
    "null tensor": ([("a", None)], ["`x`", "row 0", "null"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_key_is_named_and_nothing_is_left(spark: SparkSession, path: Path, case: str) -> None:
    rows, words = REFUSED[case]
    message = error_of(lambda: write(frame(spark, "k string, x array<int>", *rows), path, name_col="k"))
    assert_says(message, *words)
    assert files(path) == {}
