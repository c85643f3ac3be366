"""Datasets in buckets of keys: where a row goes, and joins that need no shuffle."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import call_function, col, lit

from official import load
from safetensors_spark._commands.cli import main
from spark_io import MANIFEST, Dataset, assert_says, error_of, no_job, write
from test_catalog import name
from test_pushdown import long, plan

# Spark 4.0 has it off. The others make Spark join as large tables are joined.
SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    all_of_them = {**SETTINGS, **{f"spark.sql.{key}": value for key, value in changed.items()}}
    before = {key: spark.conf.get(key) or "" for key in all_of_them}
    for key, value in all_of_them.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, old)


@pytest.fixture(autouse=True)
def joins_of_large_tables(spark: SparkSession) -> Iterator[None]:
    with settings(spark):
        yield


def rows(spark: SparkSession, begin: int, end: int, partitions: int = 3) -> DataFrame:
    """Keys in no order."""
    ids = spark.range(begin, end, 1, partitions).orderBy(call_function("hash", "id"))
    return ids.selectExpr("concat('k', id) k", "array(cast(id as float)) v")


def bucketed(
    spark: SparkSession, path: Path, begin: int = 0, end: int = 300, buckets: int = 4, mode: str = "append"
) -> Dataset:
    return write(rows(spark, begin, end), path, mode, name_col="k", key_buckets=buckets)


def table(spark: SparkSession, path: Path) -> DataFrame:
    return spark.table(name(path))


def joined(left: DataFrame, right: DataFrame, how: str = "inner") -> DataFrame:
    return left.join(right.withColumnRenamed("tensor", "other"), "tensor_key", how)


def keys(df: DataFrame) -> list[str]:
    return sorted(row[0] for row in df.select("tensor_key").collect())


def shuffles(df: DataFrame) -> int:
    return plan(df).count("Exchange hashpartitioning")


def sorts(df: DataFrame) -> int:
    return plan(df).count("Sort [tensor_key")


def bucket_of(spark: SparkSession, names: list[str], count: int) -> list[int]:
    df = spark.createDataFrame([(key,) for key in names], "key string")
    return [row[0] for row in df.selectExpr(f"cast(pmod(hash(key), {count}) as int)").collect()]


@pytest.mark.short
def test_each_shard_has_the_keys_of_one_bucket_in_order(spark: SparkSession, path: Path) -> None:
    dataset = bucketed(spark, path)
    found: list[str] = []
    for shard, record in zip(dataset.shards, dataset.manifest["shards"], strict=True):
        names = list(load(shard))
        bucket = record["key_bucket"]
        assert set(bucket_of(spark, names, 4)) == {bucket["bucket"]}
        assert bucket == {
            "buckets": 4,
            "bucket": bucket["bucket"],
            "first_key": min(names),
            "last_key": max(names),
        }
        found += names
    assert sorted(found) == sorted(f"k{number}" for number in range(300))
    assert [record["key_bucket"]["bucket"] for record in dataset.manifest["shards"]] == [0, 1, 2, 3]


@pytest.mark.short
def test_tables_in_as_many_buckets_join_without_a_shuffle_or_a_sort(spark: SparkSession, tmp_path: Path) -> None:
    left, right = bucketed(spark, tmp_path / "left"), bucketed(spark, tmp_path / "right", 200, 500)
    both = joined(table(spark, left.path), table(spark, right.path))
    assert (shuffles(both), sorts(both)) == (0, 0)
    assert keys(both) == sorted(f"k{number}" for number in range(200, 300))
    assert all(row["tensor"] == row["other"] for row in both.collect())


@pytest.mark.parametrize(("how", "expected"), [("left", 300), ("right", 2), ("full", 301), ("left_anti", 299)])
def test_a_table_that_lacks_buckets_joins_without_a_shuffle(
    spark: SparkSession, tmp_path: Path, how: str, expected: int
) -> None:
    left, right = bucketed(spark, tmp_path / "left"), bucketed(spark, tmp_path / "right", 299, 301)
    assert len(right.shards) < 4
    both = joined(table(spark, left.path), table(spark, right.path), how)
    assert shuffles(both) == 0
    assert both.count() == expected


@pytest.mark.short
def test_conditions_and_filters_of_joins_keep_the_partitions(spark: SparkSession, tmp_path: Path) -> None:
    left, right = bucketed(spark, tmp_path / "left"), bucketed(spark, tmp_path / "right", 200, 500)
    some = table(spark, right.path).where("tensor_key in ('k201', 'k250', 'k400')")
    both = joined(table(spark, left.path), some)
    assert shuffles(both) == 0
    assert keys(both) == ["k201", "k250"]
    with settings(spark, **{"optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}):
        assert keys(joined(table(spark, left.path), some.where("tensor.dtype = 'F32'"))) == ["k201", "k250"]


def test_an_aggregation_by_key_needs_no_shuffle(spark: SparkSession, path: Path) -> None:
    bucketed(spark, path)
    counts = table(spark, path).groupBy("tensor_key").count()
    assert shuffles(counts) == 0
    assert counts.where("count = 1").count() == 300


def test_with_other_numbers_of_buckets_a_join_is_right(spark: SparkSession, tmp_path: Path) -> None:
    left, right = bucketed(spark, tmp_path / "left"), bucketed(spark, tmp_path / "right", buckets=3)
    both = joined(table(spark, left.path), table(spark, right.path))
    assert shuffles(both) > 0
    assert both.count() == 300


def test_appends_keep_the_buckets(spark: SparkSession, tmp_path: Path) -> None:
    left, right = bucketed(spark, tmp_path / "left", 0, 100), bucketed(spark, tmp_path / "right", 0, 300)
    dataset = write(rows(spark, 100, 200), left.path, name_col="k")
    assert {record["key_bucket"]["buckets"] for record in dataset.manifest["shards"]} == {4}
    both = joined(table(spark, left.path), table(spark, right.path))
    assert shuffles(both) == 0
    # The shards of one bucket overlap now, so that Spark must sort them.
    assert sorts(both) == 1
    assert keys(both) == sorted(f"k{number}" for number in range(200))


def test_shards_of_a_bucket_that_follow_each_other_need_no_sort(spark: SparkSession, path: Path) -> None:
    padded = "concat('k', lpad(cast(id as string), 6, '0')) k"
    for begin in (100, 0):
        some = spark.range(begin, begin + 100).selectExpr(padded, "array(cast(id as float)) v")
        write(some, path, name_col="k", key_buckets=2)
    df = table(spark, path).sortWithinPartitions("tensor_key").select("tensor_key")
    assert sorts(df) == 0
    partitions = [[row[0] for row in part] for part in df.rdd.glom().collect()]
    assert len(partitions) == 2
    assert all(part == sorted(part) for part in partitions)
    assert sum(len(part) for part in partitions) == 200


def test_tensors_of_several_dtypes_are_read_in_the_order_of_keys(spark: SparkSession, path: Path) -> None:
    struct = "named_struct('data', cast(rpad('', n, '.') as binary), 'shape', array(1), 'dtype', dtype) t"
    kinds = "if(id % 2 = 0, 'U8', 'I64') dtype", "if(id % 2 = 0, 1, 8) n"
    df = spark.range(100).selectExpr("concat('k', id) k", *kinds).selectExpr("k", struct)
    [shard] = write(df, path, name_col="k", key_buckets=1).shards
    found = [row[0] for row in table(spark, path).select("tensor_key").collect()]
    assert found == sorted(f"k{number}" for number in range(100))
    assert {key: (t.dtype, len(t.data)) for key, t in load(shard).items()}["k7"] == ("I64", 8)


def test_reads_by_path_and_of_other_layouts(spark: SparkSession, path: Path) -> None:
    dataset = bucketed(spark, path)
    assert keys(long(spark, path)) == sorted(f"k{number}" for number in range(300))
    assert table(spark, path).count() == 300
    assert len(spark.table(name(path, "wide")).select("_metadata.file_name").collect()) == len(dataset.shards)


def test_without_the_setting_partitions_are_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    left, right = bucketed(spark, tmp_path / "left"), bucketed(spark, tmp_path / "right")
    with settings(spark, **{"sources.v2.bucketing.enabled": "false"}):
        both = joined(table(spark, left.path), table(spark, right.path))
        assert shuffles(both) == 2
        assert both.count() == 300


def test_the_function_tells_the_bucket(spark: SparkSession, path: Path) -> None:
    dataset = bucketed(spark, path, buckets=7)
    function = call_function("safetensors.bucket", lit(7), col("tensor_key"))
    found = table(spark, path).select("tensor_key", function.alias("b")).collect()
    assert [b for _, b in found] == bucket_of(spark, [key for key, _ in found], 7)
    assert {b for _, b in found} == {record["key_bucket"]["bucket"] for record in dataset.manifest["shards"]}


def test_create_table_in_buckets(spark: SparkSession, path: Path) -> None:
    rows(spark, 0, 50).createOrReplaceTempView("source")
    spark.sql(f"CREATE TABLE {name(path)} OPTIONS (name_col 'k', key_buckets 2) AS SELECT * FROM source")
    assert [record["key_bucket"]["bucket"] for record in Dataset(path).manifest["shards"]] == [0, 1]


def test_an_overwrite_chooses_anew(spark: SparkSession, path: Path) -> None:
    bucketed(spark, path)
    dataset = write(rows(spark, 0, 10), path, "overwrite", name_col="k")
    assert not any("key_bucket" in record for record in dataset.manifest["shards"])
    assert {r["key_bucket"]["buckets"] for r in bucketed(spark, path, mode="overwrite").manifest["shards"]} == {4}


def test_large_buckets_have_several_shards(spark: SparkSession, path: Path) -> None:
    large = spark.range(30).selectExpr("concat('k', id) k", "array_repeat(cast(id as float), 1000000) v")
    dataset = write(large, path, name_col="k", key_buckets=1, target_shard_size_mb=50)
    ranges = [(r["key_bucket"]["first_key"], r["key_bucket"]["last_key"]) for r in dataset.manifest["shards"]]
    assert len(ranges) == 3
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    df = table(spark, path).sortWithinPartitions("tensor_key").select("tensor_key")
    assert sorts(df) == 0
    assert [row[0] for row in df.collect()] == sorted(f"k{number}" for number in range(30))


@pytest.mark.parametrize(
    ("df", "options", "said"),
    [
        ("id k, array(1F) v", {"name_col": "k", "key_buckets": 4}, "the column `k` is bigint. Cast it to string"),
        ("string(id) k, array(1F) v, array(2F) w", {"name_col": "k", "key_buckets": 4}, "several columns, v, w"),
        ("array(1F) v", {"batch_size": 4, "key_buckets": 4}, "`key_buckets` needs `name_col`"),
        ("string(id) k, array(1F) v", {"name_col": "k", "key_buckets": 0}, "a whole number from 1 to 100000"),
        (
            "string(id) k, array(1F) v",
            {"name_col": "k", "key_buckets": 4, "duplicatesStrategy": "lastWin"},
            "no row is the last once rows are sorted by key",
        ),
    ],
)
def test_rows_that_have_no_buckets_are_refused(
    spark: SparkSession, path: Path, df: str, options: dict[str, Any], said: str
) -> None:
    with no_job(spark):
        error = error_of(lambda: write(spark.range(3).selectExpr(*split(df)), path, **options))
    assert_says(error, said)


def split(columns: str) -> list[str]:
    return columns.split(", ")


def test_appends_in_other_buckets_are_refused(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    bucketed(spark, path)
    assert_says(error_of(lambda: bucketed(spark, path, buckets=8)), "in 4 buckets of keys", "key_buckets=8")
    numbers = spark.range(3).selectExpr("id k", "array(1F) v")
    assert_says(error_of(lambda: write(numbers, path, name_col="k")), "4 buckets of keys", "Cast it to string")
    write(rows(spark, 0, 3), tmp_path / "plain", name_col="k")
    assert_says(error_of(lambda: bucketed(spark, tmp_path / "plain")), "not in buckets of keys")


@pytest.mark.short
def test_a_duplicate_key_is_found(spark: SparkSession, path: Path) -> None:
    twice = rows(spark, 0, 20).union(rows(spark, 7, 8))
    error = error_of(lambda: write(twice, path, name_col="k", key_buckets=4))
    assert_says(error, "the key `k7` occurs twice in one shard")


def test_verify_compares_buckets_with_keys(spark: SparkSession, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = bucketed(spark, path)
    assert main(["verify", str(path)]) == 0
    first, second, *_ = dataset.manifest["shards"]
    first["key_bucket"]["bucket"], second["key_bucket"]["first_key"] = 3, "a"
    (path / MANIFEST).write_text(json.dumps(dataset.manifest))
    assert main(["verify", str(path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "it has keys of bucket 0 of 4, and the manifest says that all are in bucket 3" in said
    assert f"its keys are from `{min(load(dataset.shards[1]))}` to" in said
