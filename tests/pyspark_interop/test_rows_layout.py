"""`layout=rows`: a row for each sample."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from official import BITS, DTYPES, Tensor
from spark_io import Dataset, assert_says, error_of, frame, tensors_frame, wide_schema, write


def rows(spark: SparkSession, *paths: Path, schema: Any = None, **options: str) -> DataFrame:
    reader = spark.read.format("safetensors").options(layout="rows", **options)
    reader = reader.schema(schema) if schema else reader.option("inferSchema", "true")
    return reader.load([str(path) for path in paths])


def numbers(spark: SparkSession, path: Path, count: int, partitions: int = 1, **options: Any) -> Dataset:
    """Samples `x`, a vector of three, and `y`, a scalar, which both tell the row's number."""
    made = spark.range(0, count, 1, partitions).selectExpr(
        "array(cast(id as float), 0.5F, -1F) x", "cast(id as smallint) y"
    )
    return write(made, path, **options)


def ids(df: DataFrame) -> list[int]:
    return [int.from_bytes(row["y"]["data"], "little") for row in df.collect()]


@pytest.mark.short
def test_rows_come_back_as_they_were_written_and_in_their_order(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 23, partitions=3, batch_size=4)
    found = rows(spark, path).selectExpr("st_to_array(x) x", "y").collect()
    assert [row["x"] for row in found] == [[float(i), 0.5, -1.0] for i in range(23)]
    assert [(row["y"]["shape"], row["y"]["dtype"], row["y"]["data"]) for row in found] == [
        ([], "I16", i.to_bytes(2, "little")) for i in range(23)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_of_every_dtype(spark: SparkSession, path: Path, dtype: str) -> None:
    # Eight elements are whole bytes in every dtype.
    made = [Tensor(dtype, (2, 4), bytes(range(i, i + BITS[dtype]))) for i in range(5)]
    write(tensors_frame(spark, [{"t": tensor} for tensor in made]), path, batch_size=3)
    found = [row["t"] for row in rows(spark, path).collect()]
    assert [Tensor(t["dtype"], tuple(t["shape"]), bytes(t["data"])) for t in found] == made


def test_padding_is_not_read_and_a_dropped_tail_is_not_there(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    numbers(spark, path, 10, batch_size=4, tail_strategy="pad")
    assert ids(rows(spark, path)) == list(range(10))
    assert rows(spark, path).count() == 10
    numbers(spark, tmp_path / "dropped", 10, batch_size=4, tail_strategy="drop")
    assert ids(rows(spark, tmp_path / "dropped")) == list(range(8))


def test_files_that_no_manifest_names_have_as_many_rows_as_their_first_dimension(
    spark: SparkSession, tmp_path: Path
) -> None:
    for i in range(2):
        x = np.arange(6, dtype=np.float32).reshape(3, 2) + 10 * i
        save_file({"x": x, "y": np.arange(3, dtype=np.int16) + 3 * i}, tmp_path / f"{i}.safetensors")
    save_file({"x": np.zeros((0, 2), np.float32), "y": np.zeros(0, np.int16)}, tmp_path / "2.safetensors")
    assert ids(rows(spark, tmp_path)) == list(range(6))
    assert rows(spark, tmp_path).count() == 6
    assert [row[0] for row in rows(spark, tmp_path).selectExpr("st_to_array(x)").collect()][4] == [12.0, 13.0]


def test_how_many_rows_there_are_does_not_depend_on_what_is_selected(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 7, batch_size=3)
    df = rows(spark, path)
    assert len(df.select("y.shape").collect()) == len(df.select("x.dtype").collect()) == len(df.collect()) == 7
    assert df.selectExpr("count(y)", "count(*)", "count(distinct x.dtype)").collect() == [(7, 7, 1)]
    assert [row[0] for row in df.selectExpr("_metadata.file_name").distinct().collect()].__len__() == 3


def test_tensors_must_agree_in_how_many_samples_they_have(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    save_file({"x": np.zeros((3, 2), np.float32), "y": np.zeros(4, np.int16)}, file)
    message = error_of(lambda: rows(spark, file).select("x").collect())
    assert_says(message, str(file), "`x` has 3 samples", "`y` has 4", "leave one out of the schema", "`layout=wide`")
    # The schema says which are meant.
    assert len(rows(spark, file, schema=wide_schema("y")).collect()) == 4


def test_a_scalar_has_no_samples(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    save_file({"x": np.array(1, np.float32)}, file)
    assert_says(error_of(lambda: rows(spark, file).collect()), str(file), "`x` of shape []", "has no first dimension")


def test_samples_that_share_bytes_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    header = json.dumps({"x": {"dtype": "F4", "shape": [4, 3], "data_offsets": [0, 6]}}).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(6))
    message = error_of(lambda: rows(spark, file).collect())
    assert_says(message, str(file), "`x` of shape [4, 3]", "F4", "not whole bytes")


def test_a_tensor_that_a_file_lacks_is_null_if_it_may_be(spark: SparkSession, tmp_path: Path) -> None:
    save_file({"x": np.zeros((2, 1), np.float32)}, tmp_path / "0.safetensors")
    save_file({"x": np.ones((1, 1), np.float32), "y": np.arange(1, dtype=np.int16)}, tmp_path / "1.safetensors")
    merged = rows(spark, tmp_path, mergeSchema="true")
    assert [row["y"] is None for row in merged.collect()] == [True, True, False]
    assert len(merged.where("y IS NULL").collect()) == 2
    message = error_of(lambda: rows(spark, tmp_path, schema=wide_schema("x", "y")).collect())
    assert_says(message, "0.safetensors has no tensor `y`", "nullable")
    absent = "z struct<data: binary, shape: array<int>, dtype: string>"
    assert_says(
        error_of(lambda: rows(spark, tmp_path, schema=absent).collect()), ".safetensors has none of the tensors"
    )


def test_a_tensor_too_large_for_a_value_is_read_sample_by_sample(spark: SparkSession, tmp_path: Path) -> None:
    """Three samples of 1 GiB less a bit, of which the last ends the file; it takes no room on the disk."""
    count, size = 3, (1 << 30) - 8
    header = json.dumps({"x": {"dtype": "U8", "shape": [count, size], "data_offsets": [0, count * size]}}).encode()
    file = tmp_path / "large.safetensors"
    with file.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        out.truncate(8 + len(header) + count * size)
        out.seek(-1, 2)
        out.write(b"\7")
    df = rows(spark, file)
    assert df.select("x.shape").collect() == [([size],)] * 3
    wide = spark.read.format("safetensors").option("inferSchema", "true").load(str(file))
    assert_says(error_of(lambda: wide.select("x.data").collect()), "`x`", f"{count * size} bytes", "`layout=rows`")


def test_keys_are_no_samples(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "k string, x array<float>", ("a", [1.0, 2.0]), ("b", [3.0])), path, name_col="k")
    assert_says(error_of(lambda: rows(spark, path).collect()), "was written by key", "has no samples", "`layout=long`")


def test_large_and_small_files_are_read_together(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 64, partitions=16, batch_size=4)
    df = rows(spark, path)
    assert df.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    assert ids(df) == list(range(64))
