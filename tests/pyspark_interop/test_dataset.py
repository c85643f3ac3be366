"""What a directory is after a write: its shards and its manifest."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pyspark.sql import DataFrame, SparkSession

from official import FORMAT, Tensor, load
from spark_io import (
    MANIFEST,
    Dataset,
    assert_says,
    error_of,
    files,
    frame,
    listing,
    no_job,
    read,
    tensors_frame,
    write,
)

MANIFEST_SCHEMA = Draft202012Validator(json.loads((FORMAT / "dataset_manifest.schema.json").read_text()))

SHARD_NAME = re.compile(r"part-(\d{5})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.safetensors")


def numbers(spark: SparkSession, count: int, partitions: int = 1) -> DataFrame:
    """Rows `x` = [0], [1], and so on, in as many partitions."""
    return spark.range(0, count, 1, partitions).selectExpr("array(cast(id as int)) as x")


def values(dataset: Dataset) -> list[list[int]]:
    """The numbers of each shard, in the order of the manifest."""
    return [load(shard)["x"].array.ravel().tolist() for shard in dataset.shards]


def crc32c(data: bytes) -> str:
    """CRC-32C (Castagnoli), bit by bit: another way to the number than the connector's."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def test_crc32c_of_the_check_string() -> None:
    assert crc32c(b"123456789") == "e3069283"


@pytest.mark.short
def test_manifest_tells_of_every_shard(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 10, partitions=2), path, batch_size=2)
    MANIFEST_SCHEMA.validate(dataset.manifest)
    assert dataset.manifest["total_samples"] == 10
    assert dataset.manifest["total_bytes"] == sum(shard.stat().st_size for shard in dataset.shards)
    for entry, shard in zip(dataset.manifest["shards"], dataset.shards, strict=True):
        content = shard.read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["header_bytes"] == 8 + int.from_bytes(content[:8], "little")
        assert entry["crc32c"] == crc32c(content)


def test_manifest_tells_how_it_was_written(spark: SparkSession, path: Path) -> None:
    options = {"batch_size": "2", "shapes": '{"y": [2, 1]}', "dtype": '{"x": "I64"}'}
    df = numbers(spark, 2).selectExpr("x", "array(1.5F, 2.5F) as y")
    manifest = write(df, path, **options).manifest
    assert manifest["mode"] == "batch"
    assert manifest["options"] == options
    assert manifest["schema"] == [
        {"name": "x", "dtype": "I64", "shape": [1], "type": "array<int>"},
        {"name": "y", "dtype": "F32", "shape": [2, 1], "type": "array<float>"},
    ]


def growing(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Arrays of one number, of two, and so on."""
    return spark.range(0, rows, 1, partitions).selectExpr("array_repeat(1, cast(id + 1 as int)) as x")


@pytest.mark.short
@pytest.mark.parametrize(("batch_size", "partitions"), [(2, 1), (1, 1), (1, 2)], ids=["batch", "shards", "tasks"])
def test_rows_of_different_shapes_are_refused(
    spark: SparkSession, path: Path, batch_size: int, partitions: int
) -> None:
    message = error_of(lambda: write(growing(spark, 2, partitions), path, batch_size=batch_size))
    assert_says(message, "Column `x`", "I32 [2]", "I32 [1]", "`ragged`")
    assert listing(path) == {}


def test_rows_of_different_dtypes_are_refused(spark: SparkSession, path: Path) -> None:
    rows = [{"x": Tensor("U8", (1,), b"a")}, {"x": Tensor("I8", (1,), b"b")}]
    message = error_of(lambda: write(tensors_frame(spark, rows), path, batch_size=1))
    assert_says(message, "Column `x`, row 1", "I8 [1]", "U8 [1]", "Make the rows alike")
    assert listing(path) == {}


@pytest.mark.short
def test_an_append_of_another_shape_is_refused(spark: SparkSession, path: Path) -> None:
    write(growing(spark, 1, 1), path, batch_size=1)
    before = listing(path)
    message = error_of(lambda: write(growing(spark, 3, 1).where("size(x) = 3"), path, batch_size=1))
    assert_says(message, "Column `x`, row 0", "I32 [3]", "the rows of the dataset have I32 [1]", "`ragged`")
    assert listing(path) == before


def test_an_append_of_another_shape_by_the_options_is_refused_before_any_job(spark: SparkSession, path: Path) -> None:
    write(growing(spark, 1, 1), path, batch_size=1)
    with no_job(spark):
        message = error_of(lambda: write(growing(spark, 1, 1), path, batch_size=1, shapes='{"x": [1, 1]}'))
    assert_says(message, "column `x` as I32 [1]", "I32 [1, 1]", "another directory")


def test_an_overwrite_may_have_another_shape(spark: SparkSession, path: Path) -> None:
    write(growing(spark, 1, 1), path, batch_size=1)
    replaced = write(growing(spark, 2, 1).where("size(x) = 2"), path, "overwrite", batch_size=1)
    assert replaced.manifest["schema"][0]["shape"] == [2]


def test_shape_is_known_once_rows_have_come(spark: SparkSession, path: Path) -> None:
    column = {"name": "x", "dtype": "I32", "type": "array<int>"}
    assert write(numbers(spark, 0), path, batch_size=1).manifest["schema"] == [column | {"shape": None}]
    assert write(numbers(spark, 1), path, batch_size=1).manifest["schema"] == [column | {"shape": [1]}]


@pytest.mark.short
def test_shards_and_manifest_keep_the_order_of_rows(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 10, partitions=2), path, batch_size=2)
    assert values(dataset) == [[0, 1], [2, 3], [4], [5, 6], [7, 8], [9]]
    assert dataset.samples == [2, 2, 1, 2, 2, 1]


@pytest.mark.short
def test_names_carry_partition_task_and_shard(spark: SparkSession, path: Path) -> None:
    names = [shard.name for shard in write(numbers(spark, 8, partitions=2), path, batch_size=2).shards]
    assert all(SHARD_NAME.fullmatch(name) for name in names)
    assert [name[:10] for name in names] == ["part-00000", "part-00000", "part-00001", "part-00001"]
    assert [name[-16:-12] for name in names] == ["0000", "0001", "0000", "0001"]
    assert names[0][:42] == names[1][:42]
    assert names[2][:42] == names[3][:42]
    assert names[0][11:42] != names[2][11:42]


@pytest.mark.short
def test_directory_holds_shards_and_manifest_alone(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 4), path, batch_size=2)
    assert {name for name in files(path) if not name.endswith(".crc")} == {
        MANIFEST,
        *(shard.name for shard in dataset.shards),
    }


TAILS: dict[str | None, tuple[list[list[int]], list[int]]] = {
    None: ([[0, 1, 2], [3, 4]], [3, 2]),
    "write": ([[0, 1, 2], [3, 4]], [3, 2]),
    "drop": ([[0, 1, 2]], [3]),
    "pad": ([[0, 1, 2], [3, 4, 0]], [3, 2]),
}


@pytest.mark.short
@pytest.mark.parametrize("strategy", TAILS)
def test_tail_strategy(spark: SparkSession, path: Path, strategy: str | None) -> None:
    options: dict[str, Any] = {} if strategy is None else {"tail_strategy": strategy}
    dataset = write(numbers(spark, 5), path, batch_size=3, **options)
    assert (values(dataset), dataset.samples) == TAILS[strategy]
    assert dataset.manifest["total_samples"] == sum(TAILS[strategy][1])


def test_padding_keeps_shape_and_dtype(spark: SparkSession, path: Path) -> None:
    rows = [{"x": Tensor("F6_E2M3", (2, 2), b"abc"), "y": Tensor("I64", (), b"12345678")}]
    loaded = load(write(tensors_frame(spark, rows), path, batch_size=3, tail_strategy="pad").shard)
    assert loaded == {
        "x": Tensor("F6_E2M3", (3, 2, 2), b"abc" + bytes(6)),
        "y": Tensor("I64", (3,), b"12345678" + bytes(16)),
    }


@pytest.mark.parametrize("strategy", ["write", "drop", "pad"])
def test_rows_that_fill_the_last_batch_leave_no_tail(spark: SparkSession, path: Path, strategy: str) -> None:
    dataset = write(numbers(spark, 4), path, batch_size=2, tail_strategy=strategy)
    assert values(dataset) == [[0, 1], [2, 3]]


@pytest.mark.short
def test_no_rows_give_no_shard_and_a_manifest_that_says_so(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 0), path, batch_size=2)
    assert dataset.manifest["shards"] == []
    assert dataset.manifest["total_samples"] == dataset.manifest["total_bytes"] == 0
    assert list(path.glob("*.safetensors")) == []
    MANIFEST_SCHEMA.validate(dataset.manifest)


def test_empty_partitions_give_no_shard(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 2, partitions=5), path, batch_size=2)
    assert sorted(values(dataset)) == [[0], [1]]


@pytest.mark.short
def test_append_adds_after_what_is_there(spark: SparkSession, path: Path) -> None:
    first = write(numbers(spark, 2), path, batch_size=2)
    second = write(numbers(spark, 3), path, batch_size=3)
    assert values(second) == [[0, 1], [0, 1, 2]]
    assert second.shards[0] == first.shards[0]
    assert second.manifest["total_samples"] == 5
    assert second.manifest["commit_id"] != first.manifest["commit_id"]


@pytest.mark.parametrize(
    ("schema", "row", "words"),
    [
        ("x array<float>", ([1.5],), ["`x`", "I32", "F32"]),
        ("y array<int>", ([1],), ["columns", "x", "y"]),
        ("x array<int>, y array<int>", ([1], [1]), ["columns", "x, y"]),
    ],
)
def test_append_of_other_columns_is_refused(
    spark: SparkSession, path: Path, schema: str, row: tuple[Any, ...], words: list[str]
) -> None:
    write(numbers(spark, 1), path, batch_size=1)
    before = files(path)
    message = error_of(lambda: write(frame(spark, schema, row), path, batch_size=1))
    assert_says(message, str(path), *words)
    assert files(path) == before


@pytest.mark.short
def test_overwrite_leaves_only_the_new(spark: SparkSession, path: Path) -> None:
    first = write(numbers(spark, 4), path, batch_size=2)
    second = write(numbers(spark, 1), path, mode="overwrite", batch_size=2)
    assert values(second) == [[0]]
    assert second.manifest["total_samples"] == 1
    assert not any(shard.exists() for shard in first.shards)


def test_overwrite_keeps_files_that_the_manifest_did_not_name(spark: SparkSession, path: Path) -> None:
    write(numbers(spark, 2), path, batch_size=2)
    (path / "README.txt").write_text("mine")
    write(numbers(spark, 1), path, mode="overwrite", batch_size=2)
    assert (path / "README.txt").read_text() == "mine"


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_directory_of_other_things_is_refused_and_left_alone(spark: SparkSession, path: Path, mode: str) -> None:
    path.mkdir()
    (path / "model.safetensors").write_bytes(b"mine")
    message = error_of(lambda: write(numbers(spark, 2), path, mode=mode, batch_size=2))
    assert_says(message, str(path), MANIFEST)
    assert files(path) == {"model.safetensors": b"mine"}


def test_failed_overwrite_leaves_the_old_whole(spark: SparkSession, path: Path) -> None:
    write(numbers(spark, 4), path, batch_size=2)
    before = files(path)
    failing = spark.range(0, 10, 1, 2).selectExpr("if(id < 9, array(cast(id as int)), null) as x")
    error_of(lambda: write(failing, path, mode="overwrite", batch_size=2))
    assert files(path) == before


def test_the_same_rows_give_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    one, other = (write(numbers(spark, 7, partitions=2), tmp_path / name, batch_size=2) for name in ("one", "other"))
    assert [shard.read_bytes() for shard in one.shards] == [shard.read_bytes() for shard in other.shards]


def test_spark_reads_the_shards_that_the_manifest_names(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 4), path, batch_size=2)
    (path / "leftover.safetensors").write_bytes(dataset.shards[0].read_bytes())
    rows = read(spark, path).collect()
    assert [np.frombuffer(row.x.data, np.int32).tolist() for row in rows] == [[0, 1], [2, 3]]


def test_shard_that_is_gone_is_an_error_with_its_name(spark: SparkSession, path: Path) -> None:
    dataset = write(numbers(spark, 4), path, batch_size=2)
    dataset.shards[1].unlink()
    assert dataset.shards[1].name in error_of(lambda: read(spark, path).collect())


def test_table_with_columns_that_nothing_is_read_as_can_be_described(spark: SparkSession, path: Path) -> None:
    spark.sql(f"CREATE TABLE described (x array<decimal(3,1)>) USING safetensors LOCATION '{path}'")
    try:
        columns = {row["col_name"]: row["data_type"] for row in spark.sql("DESCRIBE EXTENDED described").collect()}
        assert columns["x"] == "array<decimal(3,1)>"
        message = error_of(lambda: spark.table("described").explain())
        assert_says(message, "`x`", "array<decimal(3,1)>", "struct<data:binary,shape:array<int>,dtype:string>")
    finally:
        spark.sql("DROP TABLE described")


def test_manifest_that_cannot_be_read_is_an_error_that_an_overwrite_mends(spark: SparkSession, path: Path) -> None:
    write(numbers(spark, 3), path, batch_size=3)
    (path / MANIFEST).write_text("{")
    (path / f".{MANIFEST}.crc").unlink(missing_ok=True)
    for attempt in (lambda: write(numbers(spark, 3), path, batch_size=3), lambda: read(spark, path).collect()):
        message = error_of(attempt)
        assert_says(message, f"{MANIFEST} is not a valid dataset manifest", "Overwrite the dataset")
        assert "\tat " not in message
    dataset = write(numbers(spark, 2), path, mode="overwrite", batch_size=2)
    assert values(dataset) == [[0, 1]]
