"""Writes embeddings that Spark holds in memory: this project's two modes, Parquet, and plain files as the limit."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import safetensors_spark as sts
from benchmarks.harness import Contender, Options, measure, place_of, table
from benchmarks.results import Table

WIDTH = 1024
ROW_BYTES = WIDTH * 4
CORES = 2
SHARD_BYTES = 256 << 20


def run(options: Options, folder: Path) -> Iterator[Table]:
    rows = options.rows
    spark = session(folder)
    try:
        embeddings = cached(spark, rows)
        contenders = [
            Contender("plain files", lambda place: plain_files(place, rows * ROW_BYTES), is_ours=False),
            Contender("`batch_size`", batches(embeddings), 0.7),
            Contender("`batch_size`, `dtype` BF16", batches(embeddings, dtype="BF16")),
            Contender("`batch_size`, `dtype` F16", batches(embeddings, dtype="F16")),
            Contender("`name_col`", writer(embeddings, name_col="id")),
            Contender("`name_col`, `generate_index`", writer(embeddings, name_col="id", generate_index="true"), 0.5),
            Contender("Parquet, uncompressed", lambda place: parquet(embeddings, place), is_ours=False),
        ]
        seconds, place = measure(contenders, options.rounds, folder), place_of(folder)
        yield table(place, f"Spark writes, {place}", contenders, seconds, rows * ROW_BYTES)
    finally:
        spark.stop()


def session(folder: Path) -> SparkSession:
    return sts.configure(SparkSession.builder).config(map={**settings(folder)}).getOrCreate()


def settings(folder: Path) -> dict[str, str]:
    fixed = {
        "master": f"local[{CORES}]",
        "driver.memory": "8g",
        "ui.enabled": "false",
        "local.dir": str(folder / "local"),
        "log.level": "ERROR",
        "ui.showConsoleProgress": "false",
    }
    return {f"spark.{name}": value for name, value in fixed.items()}


def cached(spark: SparkSession, rows: int) -> DataFrame:
    """Floats between -1 and 1 that no encoding makes smaller, in memory."""
    value = f"transform(sequence(0, {WIDTH - 1}), i -> cast(hash(id, i) / 2147483648D as float))"
    embeddings = spark.range(0, rows, 1, CORES).selectExpr("cast(id as string) id", f"{value} embedding")
    embeddings.cache().count()
    return embeddings


def plain_files(folder: Path, size: int) -> None:
    """As many bytes, in files like shards, by as many threads."""
    piece = os.urandom(8 << 20)
    sizes = [min(SHARD_BYTES, size - begin) for begin in range(0, size, SHARD_BYTES)]

    def write(number: int) -> None:
        with (folder / f"{number}.bin").open("wb", buffering=0) as file:
            left = sizes[number]
            while left > 0:
                left -= file.write(memoryview(piece)[:left])

    with ThreadPoolExecutor(CORES) as threads:
        list(threads.map(write, range(len(sizes))))


def batches(df: DataFrame, **options: str) -> Callable[[Path], None]:
    return writer(df.select("embedding"), batch_size=str(SHARD_BYTES // ROW_BYTES), **options)


def writer(df: DataFrame, **options: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        df.write.format("safetensors").options(**options).mode("append").save(str(folder / "dataset"))

    return write


def parquet(df: DataFrame, folder: Path) -> None:
    df.write.option("compression", "none").parquet(str(folder / "dataset"))
