"""NumPy arrays of Tensor Structs in every form in which Spark hands a column over, and Tensor Structs of arrays."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import ml_dtypes
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import pandas_udf

from safetensors_spark.arrow import stack, tensors, to_structs
from safetensors_spark.functions import arr_to_st, st_to_array

STRUCT = "struct<data: binary, shape: array<int>, dtype: string>"

# A batch of Arrow holds three rows: several batches to a partition.
SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "3", "spark.sql.execution.arrow.pyspark.enabled": "true"}


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[None]:
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name in SETTINGS:
        spark.conf.unset(name)


@pytest.fixture
def df(spark: SparkSession, settings: None) -> DataFrame:
    """Seven rows of a BF16 tensor `x` of shape [2, 1], in order: [0, 0.5], [1, 1.5], and so on."""
    rows = spark.range(0, 7, 1, 1).selectExpr("id", "array(id, id + 0.5) AS v")
    return rows.select("id", arr_to_st("v", [2, 1], "BF16").alias("x"))


EXPECTED = (np.arange(14) / 2).reshape(7, 2, 1).astype(ml_dtypes.bfloat16)


def numbers(df: DataFrame) -> list[list[float]]:
    return [row[0] for row in df.select(st_to_array("x")).collect()]


def same(array: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    return array.dtype == expected.dtype and np.array_equal(array, expected)


@pytest.mark.short
@pytest.mark.parametrize("large", ["false", "true"])
def test_to_arrow_and_to_pandas(spark: SparkSession, df: DataFrame, large: str) -> None:
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    try:
        table, frame = df.toArrow(), cast(pd.DataFrame, df.toPandas())
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert same(stack(table["x"]), EXPECTED)
    assert same(stack(frame["x"]), EXPECTED)
    assert same(stack(row["x"] for row in df.collect()), EXPECTED)


@pytest.mark.short
def test_map_in_arrow_reads_views_and_writes_a_batch_s_own_memory(df: DataFrame) -> None:
    def double(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            x = stack(batch["x"])
            inside = batch["x"].field("data").buffers()[2].address == x.__array_interface__["data"][0]
            yield pa.record_batch([to_structs(x * 2), pa.array([inside] * len(x))], ["x", "inside"])

    doubled = df.mapInArrow(double, f"x {STRUCT}, inside boolean")
    assert (
        doubled.collect()
        == df.selectExpr("arr_to_st(transform(st_to_array(x), v -> 2 * v), x.shape, 'BF16')", "true").collect()
    )


@pytest.mark.short
def test_pandas_udfs_take_and_give_tensor_structs(df: DataFrame) -> None:
    @pandas_udf("float")  # type: ignore[call-overload, untyped-decorator]
    def total(x: pd.DataFrame) -> pd.Series:
        return pd.Series([np.nan if array is None else float(array.astype(np.float32).sum()) for array in tensors(x)])

    @pandas_udf(STRUCT)  # type: ignore[call-overload, untyped-decorator]
    def negative(x: pd.DataFrame) -> pd.DataFrame:
        return pa.RecordBatch.from_struct_array(to_structs(-stack(x))).to_pandas()

    totals = df.select(total("x")).collect()
    assert [row[0] for row in totals] == [2 * row + 0.5 for row in range(7)]
    negated = numbers(df.select(negative("x").alias("x")))
    assert negated == (-EXPECTED.astype(np.float32)).reshape(7, 2).tolist()
    with_null = df.selectExpr("IF(id = 1, NULL, x) AS x").select(total("x")).collect()
    assert [row[0] is None for row in with_null] == [False, True] + 5 * [False]


def test_nulls_and_shapes_that_differ_go_through_map_in_arrow(df: DataFrame) -> None:
    def same_again(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([to_structs(tensors(batch["x"]))], ["x"])

    mixed = df.selectExpr("IF(id = 1, NULL, arr_to_st(sequence(0, id), array(id + 1), 'F16')) AS x")
    assert mixed.mapInArrow(same_again, f"x {STRUCT}").collect() == mixed.collect()
