"""Which state of a dataset a DataFrame sees, in caches and in plans, beside what Spark's own sources show."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_io import frame, write

Reader = Callable[[SparkSession, Path], DataFrame]


def samples(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))


def files(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").options(layout="long").load(str(path))


def by_schema(spark: SparkSession, path: Path) -> DataFrame:
    schema = samples(spark, path).schema
    return spark.read.format("safetensors").options(layout="rows").schema(schema).load(str(path))


def by_name(spark: SparkSession, path: Path) -> DataFrame:
    return spark.table(f"safetensors.`{path}`")


def by_pattern(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(f"{path}*")


READERS = [samples, by_schema, by_name, by_pattern]


def add(spark: SparkSession, path: Path, first: int, mode: str = "append") -> None:
    """Ten more rows, in a shard."""
    write(frame(spark, "x long", *[(first + i,) for i in range(10)]), path, mode=mode, batch_size=10)


@pytest.fixture(autouse=True)
def no_cache(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


def is_cached(df: DataFrame) -> bool:
    return "InMemoryTableScan" in df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("reader", READERS)
def test_a_write_refreshes_what_is_cached(spark: SparkSession, path: Path, reader: Reader) -> None:
    add(spark, path, 0)
    cached = reader(spark, path).cache()
    derived = reader(spark, path).select("x.shape").cache()
    assert (cached.count(), derived.count()) == (10, 10)
    add(spark, path, 10)
    assert (cached.count(), derived.count()) == (20, 20)
    add(spark, path, 0, mode="overwrite")
    assert (cached.count(), derived.count()) == (10, 10)
    assert is_cached(cached)
    assert is_cached(derived)


@pytest.mark.parametrize("reader", READERS)
def test_each_write_refreshes_what_is_cached(spark: SparkSession, path: Path, reader: Reader) -> None:
    add(spark, path, 0)
    cached = reader(spark, path).cache()
    assert cached.count() == 10
    # Spark loads a cached table again. The next write must renew the table of this DataFrame, too.
    for written, mode, rows in ((10, "append", 20), (20, "append", 30), (0, "overwrite", 10)):
        add(spark, path, written, mode)
        assert cached.count() == rows
        assert len(cached.select("x").collect()) == rows


def test_what_is_not_cached_keeps_the_state_in_which_it_was_loaded_as_parquet_does(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    parquet, rows = str(tmp_path / "parquet"), spark.range(10).coalesce(1)
    rows.write.parquet(parquet)
    add(spark, path, 0)
    before, before_parquet = samples(spark, path), spark.read.parquet(parquet)
    rows.write.mode("append").parquet(parquet)
    add(spark, path, 10)
    assert before.count() == before_parquet.count() == len(before.collect()) == 10
    assert samples(spark, path).count() == spark.read.parquet(parquet).count() == 20


def test_insert_by_name_refreshes_what_was_cached_by_path(spark: SparkSession, path: Path) -> None:
    add(spark, path, 0)
    cached = samples(spark, path).cache()
    assert cached.count() == 10
    frame(spark, "x long", (1,)).createOrReplaceTempView("more")
    spark.sql(f"INSERT INTO safetensors.`{path}` SELECT * FROM more")
    assert cached.count() == 11


def test_a_write_elsewhere_does_not_touch_a_cache(spark: SparkSession, path: Path) -> None:
    add(spark, path, 0)
    cached = samples(spark, path).cache()
    assert cached.count() == 10
    rdd = cached._jdf.queryExecution().withCachedData().toString()
    add(spark, path.parent / "other", 0)
    assert cached._jdf.queryExecution().withCachedData().toString() == rdd


def test_a_new_read_takes_what_the_same_read_has_cached(spark: SparkSession, path: Path) -> None:
    add(spark, path, 0)
    for reader in READERS:
        reader(spark, path).cache().count()
        assert is_cached(reader(spark, path)), reader


def test_a_new_read_takes_no_cache_of_an_older_state(spark: SparkSession, path: Path) -> None:
    add(spark, path, 0)
    other = path.parent / "other"
    shutil.copytree(path, other)
    add(spark, other, 10)
    assert samples(spark, path).cache().count() == 10
    # As an application elsewhere does it, of which this session does not hear.
    for file in other.iterdir():
        shutil.copy(file, path / file.name)
    assert samples(spark, path).count() == 20


def shares_an_exchange(one: DataFrame, other: DataFrame) -> bool:
    both = one.groupBy("x.data").count().union(other.groupBy("x.data").count())
    both.collect()
    return "ReusedExchange" in both._jdf.queryExecution().executedPlan().toString()


def test_equal_scans_share_an_exchange(spark: SparkSession, path: Path) -> None:
    add(spark, path, 0)
    for reader in READERS:
        assert shares_an_exchange(reader(spark, path), reader(spark, path)), reader
    before = samples(spark, path)
    assert not shares_an_exchange(before, before.where("x.dtype = 'I64'"))
    add(spark, path, 10)
    assert not shares_an_exchange(before, samples(spark, path))
