"""`layout=long`: a row for each tensor."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from official import load
from spark_io import Dataset, assert_says, error_of, frame, write


def long(spark: SparkSession, *paths: Path) -> DataFrame:
    return spark.read.format("safetensors").option("layout", "long").load([str(path) for path in paths])


def tensors(df: DataFrame) -> list[tuple[str, str, tuple[int, ...], bytes]]:
    rows = ((row["tensor_key"], row["tensor"]) for row in df.collect())
    return [(key, tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"])) for key, tensor in rows]


def official(dataset: Dataset) -> list[tuple[str, str, tuple[int, ...], bytes]]:
    """The same, shard by shard, as the official library finds it."""
    loaded = [load(shard) for shard in dataset.shards]
    return [(key, tensor.dtype, tensor.shape, tensor.data) for shard in loaded for key, tensor in shard.items()]


def keyed(spark: SparkSession, path: Path, keys: int, partitions: int = 1) -> Dataset:
    rows = spark.range(0, keys, 1, partitions).selectExpr(
        "concat('ключ \"', id, '\"') k", "array(cast(id as float), 0.5F) x", "cast(id as smallint) n"
    )
    return write(rows, path, name_col="k")


@pytest.mark.short
def test_each_tensor_is_a_row_without_a_schema(spark: SparkSession, path: Path) -> None:
    dataset = keyed(spark, path, 20, partitions=3)
    df = long(spark, path)
    assert df.schema.simpleString() == (
        "struct<tensor_key:string,tensor:struct<data:binary,shape:array<int>,dtype:string>>"
    )
    assert sorted(tensors(df)) == sorted(official(dataset))
    assert df.count() == 40


def test_rows_come_in_the_order_of_the_bytes_shard_by_shard(spark: SparkSession, path: Path) -> None:
    dataset = keyed(spark, path, 9, partitions=3)
    starts = {}
    for shard in dataset.shards:
        raw = shard.read_bytes()
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        starts[shard] = sorted((entry["data_offsets"], key) for key, entry in header.items() if key != "__metadata__")
    expected = [key for shard in dataset.shards for _, key in starts[shard]]
    assert [row["tensor_key"] for row in long(spark, path).collect()] == expected


def test_batch_datasets_and_single_files_are_read_too(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    dataset = write(frame(spark, "x array<float>, y int", ([1.0], 1), ([2.0], 2), ([3.0], 3)), path, batch_size=2)
    assert sorted(tensors(long(spark, path))) == sorted(official(dataset))
    single = tmp_path / "single.safetensors"
    save_file({"b": np.zeros((2, 0, 3), np.float16), "a": np.array(7, np.uint8)}, single)
    assert sorted(tensors(long(spark, single))) == [("a", "U8", (), b"\7"), ("b", "F16", (2, 0, 3), b"")]
    assert len(tensors(long(spark, path, single))) == 6


def test_columns_and_fields_are_given_as_they_are_asked_for(spark: SparkSession, path: Path) -> None:
    keyed(spark, path, 2)
    rows = long(spark, path).selectExpr("tensor.dtype", "tensor_key", "tensor.shape").where("dtype = 'I16'").collect()
    assert [tuple(row) for row in rows] == [("I16", 'ключ "0"__n', []), ("I16", 'ключ "1"__n', [])]
    aggregate = long(spark, path).groupBy("tensor.dtype").count().orderBy("dtype").collect()
    assert [tuple(row) for row in aggregate] == [("F32", 2), ("I16", 2)]


def sparse(path: Path, size: int) -> Path:
    """A file with a tensor `large`, which takes no room on the disk, and a tensor `small` of one byte."""
    header: dict[str, Any] = {
        "large": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]},
        "small": {"dtype": "U8", "shape": [1], "data_offsets": [size, size + 1]},
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size + 1)
    return path


def test_a_tensor_too_large_for_a_value_is_listed_and_not_read(spark: SparkSession, tmp_path: Path) -> None:
    size = 3 << 30
    df = long(spark, sparse(tmp_path / "sparse.safetensors", size))
    assert [row[0] for row in df.select("tensor_key").collect()] == ["large", "small"]
    assert [row[0] for row in df.select("tensor.dtype").collect()] == ["U8", "U8"]
    assert_says(error_of(lambda: df.select("tensor.shape").collect()), "`large`", str(size))
    assert_says(error_of(lambda: df.select("tensor.data").collect()), "`large`", f"{size} bytes", "shape")


def test_small_files_share_a_partition_and_large_ones_are_split(spark: SparkSession, path: Path) -> None:
    # Splits are at least 64 times as large as the header.
    rows = spark.range(0, 64, 1, 16).selectExpr("id k", "array_repeat(cast(id as float), 16384) x", "id n")
    dataset = write(rows, path, name_col="k")
    assert long(spark, path).rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    size = max(shard.stat().st_size for shard in dataset.shards)
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    try:
        for most, partitions in (size, 16), (size * 3 // 4, 32):
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(most))
            df = long(spark, path)
            assert df.rdd.getNumPartitions() == partitions
            assert len({row["tensor_key"] for row in df.collect()}) == 128 == df.count()
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize("schema", ["tensor_key binary", "key string", "tensor struct<data: binary>", "x array<float>"])
def test_another_schema_is_refused(spark: SparkSession, path: Path, schema: str) -> None:
    keyed(spark, path, 1)
    reader = spark.read.format("safetensors").option("layout", "long").schema(schema)
    message = error_of(lambda: reader.load(str(path)).collect())
    assert_says(message, "layout `long`", "tensor_key:string", "Read without a schema")


def test_an_unknown_layout_is_refused(spark: SparkSession, path: Path) -> None:
    message = error_of(lambda: spark.read.format("safetensors").option("layout", "tall").load(str(path)))
    assert_says(message, "Option `layout` is `tall`", "`wide` or `long`")


def test_a_dataset_of_no_rows_has_no_tensors(spark: SparkSession, path: Path) -> None:
    write(spark.range(0).selectExpr("id", "array(1F) x"), path, name_col="id")
    assert long(spark, path).collect() == []


DECIDED_BY_HEADERS = [
    "tensor_key = 'layer.1.weight'",
    "tensor_key <=> 'layer.1.weight'",
    "tensor_key != 'layer.1.weight'",
    "tensor_key IN ('layer.1.weight', 'ключ', 'absent')",
    "tensor_key NOT IN ('layer.1.weight', 'ключ')",
    "tensor_key LIKE 'layer.%'",
    "startswith(tensor_key, '😀')",
    "tensor.dtype = 'F32'",
    "tensor.dtype IN ('I64', 'U8') AND tensor_key LIKE 'layer%'",
    "tensor.dtype = 'F32' OR tensor_key = 'ключ'",
    "NOT (tensor.dtype = 'F32' OR tensor_key = 'ключ')",
    "tensor.shape = array(2, 3)",
    "tensor.shape = cast(array() AS array<int>)",
    "tensor_key IS NOT NULL AND tensor.dtype IS NOT NULL",
    "tensor.shape IS NULL",
    "tensor_key LIKE '%weight'",
    "tensor_key LIKE '%1.w%'",
    "tensor_key > 'layer.1' AND tensor_key <= 'ключ'",
    "tensor.dtype < 'F64'",
    "tensor_key NOT LIKE 'layer%' OR tensor_key = 'layer.1.weight'",
    "tensor.data IS NOT NULL",
]
LEFT_TO_SPARK = [
    "tensor_key LIKE 'l%r.1%t'",
    "size(tensor.shape) = 2",
    "get(tensor.shape, 0) = 2",
    "length(tensor.data) = 8",
    "tensor_key IN ('ключ', NULL)",
]


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    """A checkpoint in two files."""
    folder = tmp_path / "layers"
    folder.mkdir()
    weight, bias = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)
    save_file({"layer.0.weight": weight, "layer.0.bias": bias, "step": np.array(7)}, folder / "a.safetensors")
    save_file({"layer.1.weight": weight, "layer.1.kind": bias.astype(np.uint8)}, folder / "b.safetensors")
    save_file({"ключ": np.zeros(0, np.int64), "😀": bias}, folder / "c.safetensors")
    return folder


@pytest.mark.parametrize("condition", DECIDED_BY_HEADERS + LEFT_TO_SPARK)
def test_conditions_on_headers_leave_the_plan_and_others_stay(
    spark: SparkSession, layers: Path, condition: str
) -> None:
    found = long(spark, layers).where(condition)
    # Spark by itself, on the same rows.
    everything = spark.createDataFrame(long(spark, layers).collect(), long(spark, layers).schema)
    assert sorted(tensors(found)) == sorted(tensors(everything.where(condition)))
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert bool(re.search(r"\bFilter\b", plan)) == (condition in LEFT_TO_SPARK), plan


def test_the_bytes_of_tensors_that_a_condition_leaves_out_are_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    df = long(spark, sparse(tmp_path / "sparse.safetensors", 3 << 30))
    assert tensors(df.where("tensor_key = 'small'")) == [("small", "U8", (1,), b"\0")]
    assert df.where("tensor.dtype = 'U8'").count() == 2
