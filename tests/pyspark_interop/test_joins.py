"""Joins by key: the keys of the other side narrow the scan when the query runs."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from spark_io import Dataset, write
from test_metrics import last_metrics
from test_pushdown import long


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A thousand keys in four shards, with an index."""
    rows = spark.range(0, 1000, 1, 4).selectExpr("concat('k', id) k", "array(cast(id as float)) v")
    return write(rows, tmp_path_factory.mktemp("joined") / "store", name_col="k", generate_index="true")


def wanted(spark: SparkSession, *numbers: int) -> DataFrame:
    """A small table with a condition of its own: without one Spark does not narrow the other side."""
    rows = [(f"k{number}", number % 2) for number in numbers]
    return spark.createDataFrame(rows, "tensor_key string, odd int").where("odd = 1")


@pytest.mark.short
def test_a_join_looks_up_the_keys_of_the_small_side(spark: SparkSession, store: Dataset) -> None:
    joined = long(spark, store.path).join(broadcast(wanted(spark, 1, 3, 4, 7, 2001)), "tensor_key")
    found = joined.selectExpr("tensor_key", "st_to_array(tensor)[0]").collect()
    assert sorted(found) == [("k1", 1.0), ("k3", 3.0), ("k7", 7.0)]
    shown = last_metrics(spark)
    assert (shown["files opened"], shown["files skipped by conditions"]) == ("1", "3")
    assert (shown["bytes of headers read"], shown["bytes of tensors read"]) == ("0", "12")


def test_a_join_without_an_index_reads_the_tensors_of_the_small_side(
    spark: SparkSession, store: Dataset, tmp_path: Path
) -> None:
    for shard in store.shards:
        (tmp_path / shard.name).write_bytes(shard.read_bytes())
    joined = long(spark, tmp_path).join(broadcast(wanted(spark, 1, 3, 4, 999)), "tensor_key")
    assert sorted(row[0] for row in joined.selectExpr("tensor_key", "tensor").collect()) == ["k1", "k3", "k999"]
    assert last_metrics(spark)["bytes of tensors read"] == "12"


def test_a_join_that_finds_nothing_opens_nothing(spark: SparkSession, store: Dataset) -> None:
    joined = long(spark, store.path).join(broadcast(wanted(spark, 2001, 2003)), "tensor_key", "left_semi")
    assert joined.collect() == []
    assert last_metrics(spark).get("files opened", "0") == "0"


def test_a_join_by_partition_column_reads_the_files_of_the_small_side(spark: SparkSession, tmp_path: Path) -> None:
    for day in range(4):
        rows = spark.range(day * 10, day * 10 + 10, 1, 1).selectExpr("concat('k', id) k", "array(1F) v")
        write(rows, tmp_path / f"day={day}", name_col="k")
    days = spark.createDataFrame([(2, "x"), (3, "y")], "day int, name string").where("name = 'x'")
    joined = long(spark, tmp_path).join(broadcast(days), "day")
    assert len(joined.select("tensor_key", "day").collect()) == 10
    assert last_metrics(spark)["files skipped by conditions"] == "3"
