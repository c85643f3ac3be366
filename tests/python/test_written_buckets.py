"""`DatasetWriter` with `key_buckets`: each shard has keys of one bucket, in order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from safetensors_spark import InvalidWriteError
from safetensors_spark._files.key_buckets import buckets_of
from safetensors_spark.dataset import DatasetWriter, WriteRecord, open_store, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


def write(path: Path, begin: int, end: int, step: int = 7, **options: Any) -> list[dict[str, Any]]:
    """Write keys in no order, of tensors that all differ; and return the records of the shards."""
    keys = [f"k{n * 37 % 1000}é" for n in range(begin, end)]
    with DatasetWriter(path, name_col="k", **options) as writer:
        for at in range(0, len(keys), step):
            part = keys[at : at + step]
            writer.write({"k": part, "x": [np.array([len(key), int(key[1:-1])]) for key in part]})
    assert verify(path).faults == []
    shards: list[dict[str, Any]] = json.loads((path / "dataset_manifest.json").read_text())["shards"]
    return shards


def test_each_shard_has_the_keys_of_one_bucket_in_order(path: Path) -> None:
    records = write(path, 0, 200, key_buckets=4)
    assert [record["key_bucket"]["bucket"] for record in records] == [0, 1, 2, 3]
    for record in records:
        # In the file the order is the names', which is that of their bytes here.
        names = list(load_file(path / record["file"]))
        assert buckets_of(names, 4) == {record["key_bucket"]["bucket"]}
        assert (record["key_bucket"]["first_key"], record["key_bucket"]["last_key"]) == (min(names), max(names))
    store = open_store(path)
    assert all(int(store[key][1]) == int(key[1:-1]) for key in store)
    assert len(store) == 200


def test_an_append_has_the_buckets_of_the_dataset(path: Path) -> None:
    write(path, 0, 50, key_buckets=3)
    records = write(path, 50, 90)
    assert {record["key_bucket"]["buckets"] for record in records} == {3}
    assert len(open_store(path)) == 90
    with pytest.raises(InvalidWriteError, match="in 3 buckets of keys, and cannot be appended to with `key_buckets=4`"):
        write(path, 90, 99, key_buckets=4)
    write(path, 0, 9, mode="overwrite")
    with pytest.raises(InvalidWriteError, match="not in buckets of keys, and cannot be appended to"):
        write(path, 90, 99, key_buckets=4)


def test_more_rows_than_are_sorted_at_once(path: Path) -> None:
    rows = np.random.default_rng(1).random((60, 1_000_000), dtype=np.float32)
    keys = [f"{n * 7 % 60:02d}" for n in range(60)]
    with DatasetWriter(path, name_col="k", key_buckets=2, target_shard_size_mb=50) as writer:
        for at in range(0, 60, 5):
            writer.write({"k": keys[at : at + 5], "x": rows[at : at + 5]})
    assert verify(path).faults == []
    store = open_store(path)
    assert all(np.array_equal(store[key], row) for key, row in zip(keys, rows, strict=True))


def test_tensors_may_differ_and_records_travel_as_text(path: Path) -> None:
    writer = DatasetWriter(path, name_col="k", key_buckets=5)
    tensors: dict[str, Any] = {"a": np.arange(3), "b": np.float32(1.5), "c" * 1001: np.zeros((2, 2), np.int8)}
    writer.write({"k": list(tensors), "x": list(tensors.values())})
    record = writer.finish()
    assert WriteRecord.from_json(record.to_json()) == record
    writer.commit([WriteRecord.from_json(record.to_json())])
    assert verify(path).faults == []
    store = open_store(path)
    assert all(np.array_equal(store[key], tensor) for key, tensor in tensors.items())
    [long] = [shard.key_bucket for shard in record.shards if shard.key_bucket and shard.key_bucket.keys is None]
    assert {long.bucket} == buckets_of(["c" * 1001], 5)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({"k": ["a", "b", "a"], "x": [1, 2, 3]}, {}, "`x`: the key `a` occurs twice"),
        ({"k": [1], "x": [1]}, {}, "`k`: keys in buckets are text, not numbers"),
        ({"k": ["a"], "x": [1], "y": [1]}, {}, "there are several columns, x, y"),
        ({}, {"duplicates_strategy": "lastWin"}, "no row is the last once rows are sorted"),
        ({}, {"key_buckets": 0}, "`key_buckets` is 0, expected a whole number from 1 to 100000"),
        ({}, {"name_col": None, "batch_size": 1}, "`key_buckets` needs `name_col`"),
    ],
)
def test_rows_that_have_no_bucket_are_refused(path: Path, rows: Any, options: Any, message: str) -> None:
    def write_rows() -> None:
        with DatasetWriter(path, **({"name_col": "k", "key_buckets": 4} | options)) as writer:
            writer.write(rows)

    with pytest.raises(InvalidWriteError, match=message):
        write_rows()
