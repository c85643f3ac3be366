"""When a key-value shard closes: at its target size, or when its header nears what readers take."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from safetensors import safe_open

from spark_io import Dataset, write

MB = 1_000_000
TARGET = 50 * MB

# What hosted readers of headers take at most.
HEADER_LIMIT = 25 * MB


def assert_near_target(dataset: Dataset) -> None:
    """All shards but the last of each task are within a fifth of the target, and the last is no larger."""
    sizes = [shard.stat().st_size for shard in dataset.shards]
    tasks = [shard.name[:10] for shard in dataset.shards]
    last = [task != following for task, following in zip(tasks, [*tasks[1:], ""], strict=True)]
    assert [size for size, is_last in zip(sizes, last, strict=True) if not is_last and size < 0.8 * TARGET] == []
    assert max(sizes) <= 1.2 * TARGET
    assert len(sizes) > len(set(tasks))


def keys(shard: Path) -> list[str]:
    with safe_open(shard, framework="np") as file:
        return list(file.keys())


# Floats of a row: 1 MB in each, or from 0.4 to 4 MB in no order.
@pytest.mark.parametrize("length", ["250000", "100000 + 900000 * (id * 37 % 53) div 53"])
def test_shards_have_their_target_size(spark: SparkSession, path: Path, length: str) -> None:
    rows = spark.range(0, 120, 1, 2).selectExpr("id", f"array_repeat(cast(id AS float), cast({length} AS int)) AS x")
    dataset = write(rows, path, name_col="id", target_shard_size_mb=50)
    assert_near_target(dataset)
    assert sum(dataset.samples) == 120
    assert sorted(int(key) for shard in dataset.shards for key in keys(shard)) == list(range(120))


def test_shards_of_small_rows_have_their_target_size_with_the_header(spark: SparkSession, path: Path) -> None:
    # As much header as data.
    rows = spark.range(0, 700_000, 1, 1).selectExpr("id", "array_repeat(0.5D, 24) AS x")
    dataset = write(rows, path, name_col="id", target_shard_size_mb=50)
    assert_near_target(dataset)
    assert sum(dataset.samples) == 700_000


# Names of 400 such characters. JSON takes twice the bytes for a quote.
@pytest.mark.parametrize(("character", "count"), [("k", 70_000), ('"', 40_000)])
def test_shard_of_tiny_tensors_closes_before_its_header_is_too_long(
    spark: SparkSession, path: Path, character: str, count: int
) -> None:
    df = spark.range(0, count, 1, 1).selectExpr(f"concat(repeat('{character}', 400), id) AS k", "id AS x")
    dataset = write(df, path, name_col="k")
    headers = [shard["header_bytes"] for shard in dataset.manifest["shards"]]
    assert len(headers) == 2
    assert 0.8 * HEADER_LIMIT < headers[0] <= HEADER_LIMIT
    found = {key for shard in dataset.shards for key in keys(shard)}
    assert found == {character * 400 + str(number) for number in range(count)}
