"""Datasets of many shards: a manifest names them, and none but the first is there."""

import json
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import safetensors_spark as sts
from benchmarks.harness import Contender, Options, measure
from benchmarks.results import Growth, Series

MANIFEST = "dataset_manifest.json"
SHARDS = (1_000, 10_000, 100_000, 1_000_000)
SHARD_BYTES = 300_000_000


def run(options: Options, folder: Path) -> Iterator[Growth]:
    """What a driver of 2 GB does before and after the tasks; a million shards are 300 TB."""
    builder = sts.configure(SparkSession.builder).master("local[2]")
    fixed = {"driver.memory": "2g", "ui.enabled": "false", "log.level": "ERROR", "ui.showConsoleProgress": "false"}
    spark = builder.config(map={f"spark.{name}": value for name, value in fixed.items()}).getOrCreate()
    try:
        taken = {number: actions(spark, number, options.rounds, folder / str(number)) for number in SHARDS}
        series = [Series(name, 1, {number: taken[number][name] for number in SHARDS}) for name in taken[SHARDS[0]]]
        yield Growth("shards", "Spark, over the shards that a manifest names", "shards", series, "seconds")
    finally:
        spark.stop()


def actions(spark: SparkSession, number: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    dataset = folder / "dataset"
    append(spark, dataset)
    name_shards(dataset, number)
    contenders = [
        Contender("load", lambda _: load(spark, dataset)),
        Contender("load and plan", lambda _: plan(load(spark, dataset))),
        Contender("load and count", lambda _: load(spark, dataset).count()),
        Contender("append of one shard", lambda _: append(spark, dataset)),
    ]
    return measure(contenders, rounds, folder)


def load(spark: SparkSession, dataset: Path) -> DataFrame:
    return spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(dataset))


def append(spark: SparkSession, dataset: Path) -> None:
    rows = spark.range(0, 10, 1, 1)
    rows.write.format("safetensors").mode("append").option("batch_size", 10).save(str(dataset))


def plan(df: DataFrame) -> int:
    """Makes the tasks of a scan, and runs none."""
    partitions: int = df.select("id.data")._jdf.queryExecution().executedPlan().execute().getNumPartitions()
    return partitions


def name_shards(dataset: Path, number: int) -> None:
    """Adds shards to the manifest that are not there."""
    manifest = json.loads((dataset / MANIFEST).read_text())
    [first] = manifest["shards"]
    large = first | {"bytes": SHARD_BYTES}
    names = (f"part-{i:05d}-550e8400-e29b-41d4-a716-{i:08x}0000.safetensors" for i in range(1, number))
    manifest["shards"] = [first, *(large | {"file": name} for name in names)]
    manifest["total_samples"] = first["samples_count"] * number
    manifest["total_bytes"] = first["bytes"] + SHARD_BYTES * (number - 1)
    with (dataset / MANIFEST).open("w") as out:
        json.dump(manifest, out)
