"""Rows to write come from all over Spark, and in batches of all sizes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import load_file

from official import BITS, DTYPES, Tensor, load
from spark_io import frame, read, tensors_frame, write

ROWS = [([float(i), -0.5],) for i in range(8)]


def from_parquet(df: DataFrame, folder: Path) -> DataFrame:
    df.write.parquet(str(folder))
    return df.sparkSession.read.parquet(str(folder))


# Rows reach a writer in other forms of Spark's memory, as the plan before it has it.
SOURCES: dict[str, Callable[[DataFrame, Path], DataFrame]] = {
    "parquet": from_parquet,
    "cache": lambda df, _: df.cache(),
    "shuffle": lambda df, _: df.repartition(2).sortWithinPartitions("x"),
    "slice": lambda df, _: df.selectExpr("slice(concat(array(9.0F), x, array(9.0F)), 2, 2) as x"),
    "window": lambda df, _: df.selectExpr("x", "count(*) over () as n").select("x"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_rows_may_come_from_anywhere(spark: SparkSession, tmp_path: Path, source: str) -> None:
    df = SOURCES[source](frame(spark, "x array<float>", *ROWS), tmp_path / "source").coalesce(1)
    tensor = load(write(df, tmp_path / "dataset", batch_size=8).shard)["x"]
    assert sorted(tensor.array.tolist()) == [list(values) for (values,) in ROWS]


def test_tensors_that_were_read_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{dtype.lower(): Tensor(dtype, (4, 2), bytes(range(BITS[dtype]))) for dtype in DTYPES}]
    first = write(tensors_frame(spark, rows), tmp_path / "first", batch_size=1)
    second = write(read(spark, first.path), tmp_path / "second", batch_size=1)
    assert load(second.shard) == {
        name: Tensor(tensor.dtype, (1, 1, 4, 2), tensor.data) for name, tensor in rows[0].items()
    }


def test_batch_larger_than_the_memory_that_holds_it(spark: SparkSession, path: Path) -> None:
    # 240 MB, where a task of two in a heap of 1 GiB keeps 128 MiB.
    df = spark.range(0, 300, 1, 1).selectExpr("array_repeat(cast(id as double), 100000) as x", "array(id) as id")
    loaded = load_file(write(df, path, batch_size=300).shard)
    np.testing.assert_array_equal(loaded["x"], np.broadcast_to(np.arange(300.0)[:, None], (300, 100_000)))
    assert loaded["id"].ravel().tolist() == list(range(300))
