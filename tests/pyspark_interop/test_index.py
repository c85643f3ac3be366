"""The index of a small dataset: where every tensor lies, in one sorted file."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from official import load
from spark_io import Dataset, assert_says, error_of, files, frame, write

INDEX = "_tensor_index.parquet"
# Sorted as UTF-8 bytes; UTF-16, which Java's strings are, puts the last two the other way round.
KEYS = ["", "a", "b", "ключ", "\uffff", "😀"]


def keyed(spark: SparkSession, *keys: str, partitions: int = 1) -> DataFrame:
    rows = [(key, [float(len(key)), 2.5], [ord(key[0]) % 100 if key else 0]) for key in keys]
    return frame(spark, "k string, x array<float>, n array<int>", *rows).repartition(partitions)


def index_file(dataset: Dataset) -> Path:
    (part,) = dataset.manifest["index_parts"]
    return dataset.path / str(part["file"])


def index(dataset: Dataset) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = pq.read_table(index_file(dataset)).to_pylist()
    return entries


def assert_leads_to_every_tensor(dataset: Dataset) -> None:
    """Each entry's bytes, shape and dtype are what the official library finds under its key; none is missing."""
    entries = index(dataset)
    shards = {shard.name: load(shard) for shard in dataset.shards}
    found = {
        (entry["file_name"], entry["tensor_key"]): (
            entry["dtype"],
            tuple(entry["shape"]),
            (dataset.path / entry["file_name"]).read_bytes()[entry["data_start"] : entry["data_end"]],
        )
        for entry in entries
    }
    assert len(found) == len(entries)
    assert found == {
        (file, key): (tensor.dtype, tensor.shape, tensor.data)
        for file, tensors in shards.items()
        for key, tensor in tensors.items()
    }
    order = [entry["tensor_key"].encode() for entry in entries]
    assert order == sorted(order)


def commit_of_index(dataset: Dataset) -> str:
    metadata = pq.read_metadata(index_file(dataset)).metadata
    return str(metadata[b"safetensors.commit_id"].decode())


@pytest.mark.short
def test_index_leads_to_every_tensor_of_all_shards(spark: SparkSession, path: Path) -> None:
    dataset = write(keyed(spark, *KEYS, partitions=3), path, name_col="k", generate_index="true")
    assert [entry["tensor_key"] for entry in index(dataset)] == [f"{k}__{c}" for k in KEYS for c in ("n", "x")]
    assert_leads_to_every_tensor(dataset)
    assert commit_of_index(dataset) == dataset.manifest["commit_id"]


def test_index_of_a_batch_dataset_names_each_column_once_a_shard(spark: SparkSession, path: Path) -> None:
    dataset = write(keyed(spark, *KEYS), path, batch_size=2, columns="x,n", dtype='{"n":"U8"}', generate_index="true")
    assert [entry["tensor_key"] for entry in index(dataset)] == ["n"] * 3 + ["x"] * 3
    assert_leads_to_every_tensor(dataset)


def test_appends_keep_the_index_up_without_being_asked(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, *KEYS[:3]), path, name_col="k", generate_index="true")
    dataset = write(keyed(spark, *KEYS[3:]), path, name_col="k")
    assert len(index(dataset)) == 2 * len(KEYS)
    assert_leads_to_every_tensor(dataset)
    assert commit_of_index(dataset) == dataset.manifest["commit_id"]
    assert [file.name for file in path.glob("*.parquet")] == [index_file(dataset).name]


def test_key_in_two_shards_stops_the_write_before_anything_is_visible(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "a", "b"), path, name_col="k", generate_index="true")
    before = files(path)
    message = error_of(lambda: write(keyed(spark, "c", "b"), path, name_col="k"))
    assert_says(message, "`b__n`", "two shards", "unique")
    assert files(path) == before


def test_equal_keys_in_two_tasks_of_one_write_are_found(spark: SparkSession, path: Path) -> None:
    df = spark.range(2, numPartitions=2).selectExpr("'a' AS k", "array(1f) AS x")
    assert_says(error_of(lambda: write(df, path, name_col="k", generate_index="true")), "`a`", "two shards")
    assert files(path) == {}


def test_overwrite_without_an_index_takes_the_old_one_away(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "a"), path, name_col="k", generate_index="true")
    write(keyed(spark, "b"), path, mode="overwrite", name_col="k")
    assert not list(path.glob("*.parquet"))


def test_append_gives_a_dataset_without_an_index_one_of_all_its_shards(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, *KEYS[:3], partitions=2), path, name_col="k")
    dataset = write(keyed(spark, *KEYS[3:]), path, name_col="k", generate_index="true")
    assert len(index(dataset)) == 2 * len(KEYS)
    assert_leads_to_every_tensor(dataset)


def test_append_makes_an_index_anew_that_is_out_of_date(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "a"), path, name_col="k", generate_index="true")
    outdated = (path / INDEX).read_bytes()
    current = index_file(write(keyed(spark, "b"), path, name_col="k"))
    current.write_bytes(outdated)
    current.with_name(f".{current.name}.crc").unlink(missing_ok=True)
    dataset = write(keyed(spark, "c"), path, name_col="k")
    assert len(index(dataset)) == 6
    assert_leads_to_every_tensor(dataset)
    assert commit_of_index(dataset) == dataset.manifest["commit_id"]


def test_index_of_a_dataset_with_equal_keys_is_refused(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "a"), path, name_col="k")
    write(keyed(spark, "a"), path, name_col="k")
    before = files(path)
    message = error_of(lambda: write(keyed(spark, "b"), path, name_col="k", generate_index="true"))
    assert_says(message, "`a__n` is in two shards", "without `generate_index`")
    assert files(path) == before


def test_index_of_no_rows_is_empty(spark: SparkSession, path: Path) -> None:
    dataset = write(keyed(spark, "a").limit(0), path, name_col="k", generate_index="true")
    assert index(dataset) == []
