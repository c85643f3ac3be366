"""The work of `growth`: functions of modules, which other processes import."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.shards import load, name_shards, plan
from safetensors_spark.dataset import DatasetWriter, Store, open_dataset, open_store

# Of a row; of a batch; of a shard.
WIDTH, BATCH, SHARD = 64, 4096, 65536
LOOK_UPS = 1000


def make_rows(place: Path, size: int) -> None:
    write_rows(place, size)
    (place / "written").rename(place / "rows")


def write_rows(place: Path, size: int) -> None:
    rows = {"x": np.ones((BATCH, WIDTH), np.float32)}
    with DatasetWriter(fresh(place), batch_size=SHARD) as writer:
        for _ in range(size // BATCH):
            writer.write(rows)


def read_rows(place: Path, size: int) -> None:
    read = sum(len(batch["x"]) for batch in open_dataset(place / "rows").batches(BATCH))
    assert read == size


def spark_writes_rows(spark: SparkSession, place: Path, size: int) -> None:
    rows = spark.range(0, size, 1, 2).selectExpr(f"array_repeat(cast(id as float), {WIDTH}) x")
    rows.write.format("safetensors").option("batch_size", SHARD).mode("append").save(str(fresh(place)))


def spark_reads_rows(spark: SparkSession, place: Path, _: int) -> None:
    drop(spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(place / "rows")))


def make_tensors(place: Path, size: int) -> None:
    """One file with tensors of a byte each."""
    header = {
        f"t{number:07}": {"dtype": "U8", "shape": [1], "data_offsets": [number, number + 1]} for number in range(size)
    }
    safetensors(place / "one/model.safetensors", header, bytes(size))


def open_tensors(place: Path, size: int) -> None:
    assert open_store(place / "one")[f"t{size // 2:07}"].shape == (1,)


def spark_tensors(spark: SparkSession, place: Path, _: int) -> None:
    read = spark.read.format("safetensors").option("layout", "long").load(str(place / "one"))
    drop(read.select("tensor.dtype"))


def make_shards(place: Path, size: int) -> None:
    """A dataset whose shards are not there, but the first."""
    with DatasetWriter(place / "rows", batch_size=10) as writer:
        writer.write({"id": np.arange(10)})
    name_shards(place / "rows", size)


def make_files(place: Path, size: int) -> None:
    header = {"id": {"dtype": "I64", "shape": [10], "data_offsets": [0, 80]}}
    for number in range(size):
        safetensors(place / f"rows/{number:06}.safetensors", header, bytes(80))


def open_samples(place: Path, size: int) -> None:
    assert len(open_dataset(place / "rows")) == 10 * size


def spark_plans(spark: SparkSession, place: Path, _: int) -> None:
    plan(load(spark, place / "rows"))


def make_keys(place: Path, size: int) -> None:
    write_keys(place, size)
    (place / "written").rename(place / "keys")


def write_keys(place: Path, size: int) -> None:
    with DatasetWriter(fresh(place), name_col="k", generate_index=True) as writer:
        for begin in range(0, size, BATCH):
            names = [key(number) for number in range(begin, min(begin + BATCH, size))]
            writer.write({"k": names, "x": np.ones((len(names), 4), np.float32)})


def open_key(place: Path, size: int) -> None:
    assert open_store(place / "keys")[key(size // 2)].shape == (4,)


class Keys:
    """Look-ups in a store that stays open."""

    def __init__(self) -> None:
        self.store: Store | None = None

    def __call__(self, place: Path, size: int) -> None:
        if self.store is None:
            self.store = open_store(place / "keys")
        for number in np.random.default_rng(1).integers(0, size, LOOK_UPS):
            self.store[key(number)]


def spark_writes_keys(spark: SparkSession, place: Path, size: int) -> None:
    rows = spark.range(0, size, 1, 2).selectExpr("lpad(cast(id as string), 9, '0') k", "array_repeat(1F, 4) x")
    rows.write.format("safetensors").options(name_col="k", generate_index="true").mode("append").save(str(fresh(place)))


def spark_key(spark: SparkSession, place: Path, size: int) -> None:
    read = spark.read.format("safetensors").option("layout", "long").load(str(place / "keys"))
    assert read.where(f"tensor_key = '{key(size // 2)}'").count() == 1


def make_appends(place: Path, size: int) -> None:
    """Datasets that were appended to so often."""
    for number in range(size):
        append_rows(place, number)
        append_keys(place, number)


def append_rows(place: Path, _: int) -> None:
    with DatasetWriter(place / "rows", batch_size=10) as writer:
        writer.write({"id": np.arange(10)})


def append_keys(place: Path, _: int) -> None:
    with DatasetWriter(place / "keys", name_col="k", generate_index=True) as writer:
        writer.write({"k": [unused(place)], "x": np.ones((1, 4), np.float32)})


def spark_appends_rows(spark: SparkSession, place: Path, _: int) -> None:
    append(spark.range(0, 10, 1, 1), place / "rows", batch_size="10")


def spark_appends_keys(spark: SparkSession, place: Path, _: int) -> None:
    rows = spark.range(0, 1, 1, 1).selectExpr(f"'{unused(place)}' k", "array_repeat(1F, 4) x")
    append(rows, place / "keys", name_col="k", generate_index="true")


def append(rows: DataFrame, path: Path, **options: str) -> None:
    rows.write.format("safetensors").options(**options).mode("append").save(str(path))


def unused(place: Path) -> str:
    """A key that no append has had."""
    numbers = place / "number"
    number = int(numbers.read_text()) if numbers.exists() else 0
    numbers.write_text(str(number + 1))
    return key(number)


def key(number: int) -> str:
    return f"{number:09}"


def drop(df: DataFrame) -> None:
    """Makes every row, and drops it."""
    df.write.format("noop").mode("overwrite").save()


def fresh(place: Path) -> Path:
    shutil.rmtree(place / "written", ignore_errors=True)
    return place / "written"


def safetensors(file: Path, header: dict[str, Any], payload: bytes) -> None:
    text = json.dumps(header, separators=(",", ":")).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(len(text).to_bytes(8, "little") + text + payload)
