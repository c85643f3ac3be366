"""Where a schema comes from that the user did not give: one header, or all of them, read on the driver or by a job."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from spark_io import MANIFEST, assert_says, error_of, no_job, read, write

# Of files; with more of them Spark's own sources list by a job.
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@contextmanager
def set_to(spark: SparkSession, setting: str, value: Any) -> Iterator[None]:
    spark.conf.set(setting, str(value))
    try:
        yield
    finally:
        spark.conf.unset(setting)


def save(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.array([1], np.uint8) for name in names}, path)
    return path


def merged(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("safetensors").options(mergeSchema=True, **options).load(str(path))


def columns(df: DataFrame) -> list[tuple[str, bool]]:
    return [(field.name, field.nullable) for field in df.schema]


def many(folder: Path, files: int) -> Path:
    """Files that all have `x`, of which every third has `third`, and each a tensor of its own."""
    for number in range(files):
        third = ["third"] if number % 3 == 2 else []
        save(folder / f"{number:04d}.safetensors", f"own {number}", "x", *third)
    return folder


def expected(files: int) -> list[tuple[str, bool]]:
    names = ["own 0", "x", "own 1", "own 2", "third", *(f"own {number}" for number in range(3, files))]
    return [(name, name != "x") for name in names]


@pytest.mark.parametrize("layout", ["wide", "rows"])
def test_merged_columns_come_in_the_order_of_their_first_file(spark: SparkSession, tmp_path: Path, layout: str) -> None:
    table = merged(spark, many(tmp_path, 5), layout=layout)
    assert columns(table) == expected(5)
    rows = table.select("`own 3`.dtype", "third.shape", "x.data").collect()
    assert [tuple(row) for row in rows] == [
        ("U8" if number == 3 else None, [1] * (layout == "wide") if number == 2 else None, b"\1") for number in range(5)
    ]


@pytest.mark.short
def test_headers_of_many_files_are_read_by_a_job_and_of_few_by_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    many(tmp_path, 40)
    with set_to(spark, THRESHOLD, 40), no_job(spark):
        assert columns(merged(spark, tmp_path)) == expected(40)
    with pytest.raises(AssertionError), no_job(spark):
        assert columns(merged(spark, tmp_path)) == expected(40)
    assert merged(spark, tmp_path).where("third IS NOT NULL").count() == 13


@pytest.mark.parametrize("threshold", [0, 100])
def test_a_broken_file_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path, threshold: int) -> None:
    many(tmp_path, 40)
    (tmp_path / "0023.safetensors").write_bytes(b"\0" * 20)
    with set_to(spark, THRESHOLD, threshold), pytest.raises(AnalysisException) as error:
        merged(spark, tmp_path)
    assert_says(str(error.value), "No schema can be inferred", "0023.safetensors", "InvalidHeaderDeserialization")
    assert "\n" not in str(error.value)
    assert ".." not in str(error.value)


@pytest.mark.parametrize("threshold", [0, 100])
def test_more_than_ten_thousand_columns_are_not_inferred(spark: SparkSession, tmp_path: Path, threshold: int) -> None:
    for number in range(6):
        save(tmp_path / f"{number}.safetensors", *(f"{number} {tensor}" for tensor in range(2000)))
    with set_to(spark, THRESHOLD, threshold):
        assert_says(
            error_of(lambda: merged(spark, tmp_path)), "All files together", "more than 10000 tensors", "`layout=long`"
        )
        (tmp_path / "0.safetensors").unlink()
        assert len(merged(spark, tmp_path).columns) == 10000
    large = save(tmp_path / "large.safetensors", *(str(tensor) for tensor in range(10001)))
    assert_says(error_of(lambda: read(spark, large)), str(large), "more than 10000 tensors", "`layout=long`", "schema")


def test_a_broken_first_file_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    many(tmp_path, 2)
    (tmp_path / "0000.safetensors").write_bytes(b"{}")
    assert_says(
        error_of(lambda: read(spark, tmp_path)), "No schema can be inferred", "0000.safetensors", "HeaderTooSmall"
    )


def test_a_dataset_of_no_rows_has_the_columns_of_its_manifest(spark: SparkSession, path: Path) -> None:
    write(spark.range(0).selectExpr("array(1F) x", "id y"), path, batch_size=2)
    for options in ({"inferSchema": True}, {"mergeSchema": True}, {"inferSchema": True, "layout": "rows"}):
        table = spark.read.format("safetensors").options(**options).load(str(path))
        assert columns(table) == [("x", False), ("y", False)]
        assert table.collect() == []


def test_a_store_of_no_rows_has_no_columns_to_infer(spark: SparkSession, path: Path) -> None:
    write(spark.range(0).selectExpr("id", "array(1F) x"), path, name_col="id")
    for options in ({"inferSchema": True}, {"mergeSchema": True}):
        reader = spark.read.format("safetensors").options(**options)
        message = error_of(lambda reader=reader: reader.load(str(path)))  # type: ignore[misc]
        assert_says(message, "has no shards", "`.schema(...)`")


def test_the_first_file_is_that_of_the_index(spark: SparkSession, path: Path) -> None:
    rows = spark.range(0, 4, 1, 2).selectExpr("concat('k', 9 - id) k", "array(1F) x")
    shards = write(rows, path, name_col="k", generate_index=True).shards
    assert len(shards) == 2
    # The least key is in the last shard.
    assert sorted(read(spark, path).columns) == ["k6", "k7"]
    first = spark.read.format("safetensors").options(inferSchema=True, pathGlobFilter="part-00000-*").load(str(path))
    assert sorted(first.columns) == ["k8", "k9"]
    # Of another commit, it has no say.
    manifest = path / MANIFEST
    parts = [{"file": "_tensor_index.parquet", "commit_id": "another"}]
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"index_parts": parts}))
    assert sorted(read(spark, path).columns) == ["k8", "k9"]


def indexed(spark: SparkSession, path: Path) -> Path:
    """A dataset of two shards, and its index."""
    rows = spark.range(0, 4, 1, 2).selectExpr("concat('k', id) k", "array(id + 0.5F, 2F) x")
    write(rows, path, name_col="k", dtype="F32", generate_index=True)
    return path / "_tensor_index.parquet"


def look_up(spark: SparkSession, path: Path, condition: str = "tensor_key IN ('k1', 'k2')") -> DataFrame:
    table = spark.read.format("safetensors").option("layout", "long").load(str(path))
    return table.where(condition).selectExpr("tensor_key", "st_to_array(tensor) AS x")


FOUND = [("k1", [1.5, 2.0]), ("k2", [2.5, 2.0])]


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


def test_an_index_of_another_commit_is_ignored(spark: SparkSession, path: Path) -> None:
    index = indexed(spark, path)
    outdated = index.read_bytes()
    rows = spark.range(0, 4, 1, 2).selectExpr("concat('k', id) k", "array(-id, 7, 8) x")
    write(rows, path, mode="overwrite", name_col="k", dtype="I64", generate_index=True)
    index.write_bytes(outdated)
    assert rows_of(look_up(spark, path)) == [("k1", [-1, 7, 8]), ("k2", [-2, 7, 8])]


def test_a_foreign_file_in_the_place_of_the_index_is_ignored(spark: SparkSession, path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), indexed(spark, path))
    assert rows_of(look_up(spark, path)) == FOUND


@pytest.mark.parametrize("damage", ["empty", "no parquet", "cut off", "zeros"])
def test_an_index_that_cannot_be_read_is_an_error(spark: SparkSession, path: Path, damage: str) -> None:
    index = indexed(spark, path)
    raw = index.read_bytes()
    index.write_bytes(
        {"empty": b"", "no parquet": b"{}" * 99, "cut off": raw[:-9], "zeros": b"PAR1" + b"\0" * 400 + raw[404:]}[
            damage
        ]
    )
    for ask in (look_up(spark, path).collect, lambda: read(spark, path)):
        assert_says(error_of(ask), str(index), "cannot be read", "Delete it", "`generate_index`")
    # Who does not ask it does not mind.
    assert len(rows_of(look_up(spark, path, "true"))) == 4
    index.unlink()
    assert rows_of(look_up(spark, path)) == FOUND


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("file_name", "../x.safetensors", ["`k1` is in `../x.safetensors`", "not a shard"]),
        ("file_name", "/etc/passwd", ["`k1` is in `/etc/passwd`", "not a shard"]),
        ("file_name", "left.safetensors", ["`k1` is in `left.safetensors`", "not a shard"]),
        ("data_end", 1 << 40, ["`k1`", str(1 << 40)]),
        ("data_start", -8, ["`k1`", "bytes -8"]),
        ("data_end", 0, ["`k1`", "to 0"]),
        ("dtype", "F33", ["`k1` has the dtype `F33`"]),
        ("dtype", "F64", ["`k1` has 8 bytes, which do not fit F64 [2]"]),
        ("shape", [3], ["`k1` has 8 bytes, which do not fit F32 [3]"]),
        ("shape", [-2], ["`k1` has 8 bytes, which do not fit F32 [-2]"]),
        ("shape", [-2, -1], ["`k1`", "do not fit F32 [-2, -1]"]),
    ],
)
def test_an_index_that_says_what_cannot_be_is_an_error(
    spark: SparkSession, path: Path, column: str, value: Any, words: list[str]
) -> None:
    index = indexed(spark, path)
    save(path / "left.safetensors", "k1")
    save(path.parent / "x.safetensors", "k1")
    table = pq.read_table(index)
    entries = table.to_pylist()
    entries[1][column] = value
    pq.write_table(pa.Table.from_pylist(entries, table.schema), index)
    (path / f".{index.name}.crc").unlink(missing_ok=True)
    assert_says(error_of(look_up(spark, path).collect), str(index), *words, "Delete it")


def test_a_shard_that_is_cut_off_after_planning_is_an_error_that_names_it(spark: SparkSession, path: Path) -> None:
    indexed(spark, path)
    found = look_up(spark, path)
    found._jdf.queryExecution().executedPlan()
    shards = sorted(path.glob("*.safetensors"))
    for shard in shards:
        shard.write_bytes(shard.read_bytes()[:-20])
    assert_says(error_of(found.collect), "has changed since the table was loaded", "Load the table again")
