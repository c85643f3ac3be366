"""The most memory that the main kinds of work take, each in a process of its own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks import peaks
from benchmarks.growth import Kind, measured
from benchmarks.harness import Options
from benchmarks.results import Measure, Result, Table
from benchmarks.sessions import OURS, Jar, sessions
from benchmarks.write import CORES, ROW_BYTES, SHARD_BYTES, WIDTH
from safetensors_spark import jar_path, pipeline
from safetensors_spark.dataset import DatasetWriter, open_dataset, open_store

BATCH = 1024
LOOK_UPS = 10_000
# Of a JSON record: as many as an embedding has bytes.
TEXT = "x" * ROW_BYTES


def run(options: Options, folder: Path) -> Iterator[Table]:
    kinds = [
        Kind("Spark writes, `batch_size`", 1, spark_writes_batches, True),
        Kind("Spark writes, `name_col` and an index", 1, spark_writes_keys, True),
        Kind("Spark reads, `layout=rows`", 1, spark_reads_rows, True),
        Kind("Spark reads, `layout=long`", 1, spark_reads_keys, True),
        Kind("`DatasetWriter`, `batch_size`", 1, writes_batches),
        Kind("`DatasetWriter`, `name_col` and an index", 1, writes_keys),
        Kind("`open_dataset`, an epoch in order", 1, reads_batches),
        Kind("`open_dataset`, an epoch shuffled", 1, reads_shuffled),
        Kind("`open_store`, 10,000 keys", 1, reads_keys),
        Kind("a pipeline of two processes, to Parquet", 1, runs_pipeline),
    ]
    make_lines(folder, options.rows)
    heads = {name: Measure(name) for name in (peaks.HEAP, peaks.DIRECT, peaks.OWN, peaks.RESIDENT)}
    results = []
    for kind in kinds:
        print(f"memory: {kind.name}", file=sys.stderr)
        with sessions([Jar(OURS, jar_path())] if kind.on_spark else [], folder / "sessions") as opened:
            _, memory = measured(kind, folder, options.rows, 0, *opened)
        results.append(Result(kind.name, {heads[name].name: [peak] for name, peak in memory.items() if name in heads}))
    size = options.rows * ROW_BYTES
    yield Table("peaks", f"Peaks for {size / 1e9:.1f} GB", [*heads.values()], results, None)


def rows_of(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, CORES).selectExpr(
        "cast(id as string) id", f"array_repeat(cast(id as float), {WIDTH}) x"
    )


def spark_writes_batches(spark: SparkSession, folder: Path, rows: int) -> None:
    writer = rows_of(spark, rows).select("x").write.format("safetensors")
    writer.option("batch_size", SHARD_BYTES // ROW_BYTES).mode("append").save(str(folder / "batches"))


def spark_writes_keys(spark: SparkSession, folder: Path, rows: int) -> None:
    writer = rows_of(spark, rows).write.format("safetensors")
    writer.options(name_col="id", generate_index="true").mode("append").save(str(folder / "keys"))


def spark_reads_rows(spark: SparkSession, folder: Path, _: int) -> None:
    reader = spark.read.format("safetensors").options(layout="rows", inferSchema="true")
    reader.load(str(folder / "batches")).write.format("noop").mode("overwrite").save()


def spark_reads_keys(spark: SparkSession, folder: Path, _: int) -> None:
    reader = spark.read.format("safetensors").option("layout", "long")
    reader.load(str(folder / "keys")).write.format("noop").mode("overwrite").save()


def writes_batches(folder: Path, rows: int) -> None:
    batch = {"x": np.ones((BATCH, WIDTH), np.float32)}
    with DatasetWriter(folder / "python-batches", batch_size=SHARD_BYTES // ROW_BYTES) as writer:
        for _ in range(rows // BATCH):
            writer.write(batch)


def writes_keys(folder: Path, rows: int) -> None:
    values = np.ones((BATCH, WIDTH), np.float32)
    with DatasetWriter(folder / "python-keys", name_col="id", generate_index=True) as writer:
        for begin in range(0, rows, BATCH):
            writer.write({"id": [str(number) for number in range(begin, begin + BATCH)], "x": values})


def reads_batches(folder: Path, rows: int) -> None:
    assert sum(len(batch["x"]) for batch in open_dataset(folder / "batches").batches(BATCH)) == rows


def reads_shuffled(folder: Path, rows: int) -> None:
    batches = open_dataset(folder / "batches").batches(BATCH, shuffle=True, seed=1)
    assert sum(len(batch["x"]) for batch in batches) == rows


def reads_keys(folder: Path, rows: int) -> None:
    store = open_store(folder / "keys")
    for number in np.random.default_rng(1).integers(0, rows, LOOK_UPS):
        assert store[str(number)].shape == (WIDTH,)


def make_lines(folder: Path, rows: int) -> None:
    (folder / "lines").mkdir()
    for file in range(4):
        with (folder / f"lines/{file}.jsonl").open("w") as lines:
            for number in range(rows // 4):
                lines.write(json.dumps({"id": number, "text": TEXT}) + "\n")


def runs_pipeline(folder: Path, _: int) -> None:
    lines = pipeline.Dataset.from_files(folder / "lines", "*.jsonl").flat_map(pipeline.load_jsonl)
    written = lines.map(with_length).write_parquet(str(folder / "out/data-{shard:05d}.parquet"))
    list(pipeline.create_backend("processes", max_parallelism=2, progress=False).execute(written))


def with_length(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "length": len(record["text"])}
