"""Any rows that Spark can write come back from it: by paths with `decode`, from tables, and from paths in SQL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from random_rows import Rows, tables
from spark_io import write

examples = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def tuples(df: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.collect()]


def decoded(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))


def listed(options: dict[str, str]) -> str:
    """Options as SQL has them."""
    return ", ".join(f"{option} '{value}'" for option, value in options.items())


@settings(examples, max_examples=16)
@given(tables(), st.integers(1, 4), st.sampled_from(["write", "pad"]))
def test_random_rows_come_back_from_files(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table: Rows,
    batch_size: int,
    tail: str,
) -> None:
    path = tmp_path_factory.mktemp("random") / "dataset"
    source = table.frame(spark)
    write(source, path, batch_size=batch_size, tail_strategy=tail, **table.options)
    back = decoded(spark, path)
    assert back.dtypes == source.dtypes
    assert tuples(back) == table.rows


def by_save_as_table(spark: SparkSession, name: str, source: DataFrame, options: dict[str, str]) -> None:
    source.write.format("safetensors").options(**options).saveAsTable(name)


def by_create_and_insert(spark: SparkSession, name: str, source: DataFrame, options: dict[str, str]) -> None:
    columns = ", ".join(f"{column} {kind}" for column, kind in source.dtypes)
    spark.sql(f"CREATE TABLE {name} ({columns}) USING safetensors OPTIONS ({listed(options)})")
    spark.sql(f"INSERT INTO {name} TABLE source")


def by_create_as_select(spark: SparkSession, name: str, source: DataFrame, options: dict[str, str]) -> None:
    spark.sql(f"CREATE TABLE {name} USING safetensors OPTIONS ({listed(options)}) AS TABLE source")


def by_write_to(spark: SparkSession, name: str, source: DataFrame, options: dict[str, str]) -> None:
    source.writeTo(name).using("safetensors").options(**options).create()


WAYS = [by_save_as_table, by_create_and_insert, by_create_as_select, by_write_to]


@settings(examples, max_examples=12)
@given(st.sampled_from(WAYS), st.data(), st.integers(1, 4))
def test_random_rows_of_every_kind_come_back_from_tables(
    spark: SparkSession, way: Callable[..., None], data: st.DataObject, batch_size: int
) -> None:
    # Vectors have no name in SQL.
    found = data.draw(tables(has_vectors=way is not by_create_and_insert))
    source = found.frame(spark)
    source.createOrReplaceTempView("source")
    table = "random_rows"
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    way(spark, table, source, {"batch_size": str(batch_size), **found.options})
    assert spark.table(table).dtypes == source.dtypes
    assert tuples(spark.table(table)) == found.rows
    spark.sql(f"INSERT INTO {table} TABLE source")
    source.writeTo(table).append()
    assert tuples(spark.table(table)) == found.rows * 3


@settings(examples, max_examples=6)
@given(tables(), st.integers(1, 4))
def test_random_rows_of_every_kind_come_back_from_paths(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, found: Rows, batch_size: int
) -> None:
    path = tmp_path_factory.mktemp("random") / "dataset"
    by_path, of_tensors = f"safetensors.`{path}`", f"safetensors.rows.`{path}`"
    source = found.frame(spark)
    source.createOrReplaceTempView("source")
    options = {"batch_size": str(batch_size), **found.options}
    spark.sql(f"CREATE TABLE {by_path} OPTIONS ({listed(options)}) AS TABLE source")
    spark.sql(f"INSERT INTO {by_path} TABLE source")
    spark.sql(f"INSERT INTO {of_tensors} SELECT /*+ COALESCE(1) */ * FROM {by_path}")
    back = decoded(spark, path)
    assert back.dtypes == source.dtypes
    assert tuples(back) == found.rows * 4
