"""`ignoreCorruptFiles` and `ignoreMissingFiles`, as options and as Spark's settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_io import Dataset, assert_says, error_of, frame, write

LAYOUTS = ["wide", "long", "rows"]


@pytest.fixture
def dataset(spark: SparkSession, path: Path) -> Dataset:
    """Three shards of two rows."""
    return write(frame(spark, "x int", *[(i,) for i in range(6)]), path, batch_size=2)


def load(spark: SparkSession, dataset: Dataset, layout: str = "rows", **options: Any) -> DataFrame:
    options = {"layout": layout, "mergeSchema": "true"} | options
    return spark.read.format("safetensors").options(**options).load(str(dataset.path))


def rows(df: DataFrame) -> int:
    """How many rows there are; however they are counted."""
    counted = len(df.collect())
    assert df.count() == counted
    assert len(df.limit(counted).collect()) == counted
    return counted


@contextmanager
def setting(spark: SparkSession, name: str) -> Iterator[None]:
    spark.conf.set(f"spark.sql.files.{name}", "true")
    yield
    spark.conf.unset(f"spark.sql.files.{name}")


def damage(dataset: Dataset) -> None:
    """The header of the second shard is none, and the third is shorter than it was."""
    content = dataset.shards[1].read_bytes()
    dataset.shards[1].write_bytes(b"\xff" * len(content))
    dataset.shards[2].write_bytes(content[:-4])


@pytest.mark.parametrize(("layout", "left"), [("wide", 1), ("long", 1), ("rows", 2)])
def test_corrupt_files_are_skipped(spark: SparkSession, dataset: Dataset, layout: str, left: int) -> None:
    damage(dataset)
    assert_says(error_of(lambda: load(spark, dataset, layout).collect()), ".safetensors")
    assert rows(load(spark, dataset, layout, ignoreCorruptFiles="true")) == left
    with setting(spark, "ignoreCorruptFiles"):
        assert rows(load(spark, dataset, layout)) == left
        assert_says(
            error_of(lambda: load(spark, dataset, layout, ignoreCorruptFiles="false").collect()), ".safetensors"
        )


@pytest.mark.parametrize(("layout", "left"), [("wide", 2), ("long", 2), ("rows", 4)])
def test_missing_files_are_skipped(spark: SparkSession, dataset: Dataset, layout: str, left: int) -> None:
    loaded = load(spark, dataset, layout, ignoreMissingFiles="true")
    dataset.shards[1].unlink()
    assert_says(error_of(lambda: load(spark, dataset, layout).collect()), dataset.shards[1].name)
    assert_says(error_of(lambda: load(spark, dataset, layout, ignoreCorruptFiles="true").collect()), "is gone")
    assert rows(load(spark, dataset, layout, ignoreMissingFiles="true")) == left
    # Missing since it was loaded.
    assert rows(loaded) == left
    with setting(spark, "ignoreMissingFiles"):
        assert rows(load(spark, dataset, layout)) == left


def test_a_schema_is_inferred_from_the_files_that_can_be_read(spark: SparkSession, dataset: Dataset) -> None:
    dataset.shards[0].write_bytes(b"\xff" * dataset.shards[0].stat().st_size)
    found = load(spark, dataset, mergeSchema="false", inferSchema="true", ignoreCorruptFiles="true")
    assert found.columns == ["x"]
    assert rows(found) == 4
