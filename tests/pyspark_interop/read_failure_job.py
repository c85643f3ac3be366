"""Reads that go wrong, where executors are processes of their own.

Run as `python read_failure_job.py DIRECTORY`; prints a JSON object. `killed`: the rows of a read in which an executor
was killed, and how many were. `overwritten`: the rows that a read had before the dataset was overwritten, its error,
and the rows of another read.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

from cluster_job import start
from spark_io import write

SHARDS, SAMPLES = 8, 25


def dataset(spark: SparkSession, path: Path, first: int, mode: str = "append") -> None:
    rows = spark.range(first, first + SHARDS * SAMPLES, 1, SHARDS).selectExpr("id")
    write(rows, path, mode, batch_size=SAMPLES)


def samples(spark: SparkSession, path: Path) -> DataFrame:
    reader = spark.read.format("safetensors").options(layout="rows", inferSchema="true")
    return reader.load(str(path)).selectExpr("st_to_array_long(id)[0] id", "_metadata.file_name")


def die_once(number: int, marker: Path) -> int:
    """Kills the executor, in the middle of a shard, the first time that it comes to that."""
    if number % SAMPLES == SAMPLES // 2 and number > SAMPLES:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return number
        os.kill(parent(os.getppid()), signal.SIGKILL)
    return number


def parent(process: int) -> int:
    """Of a worker's daemon: the executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()[1])


def killed(spark: SparkSession, path: Path) -> dict[str, Any]:
    dataset(spark, path, 0)
    marker = path.with_name("killed")
    deadly = udf(lambda number: die_once(number, marker), LongType()).asNondeterministic()
    rows = [row[0] for row in samples(spark, path).select(deadly("id")).collect()]
    executors = spark._jsc.sc().statusStore().executorList(False)
    dead = [i for i in range(executors.size()) if not executors.apply(i).isActive()]
    return {"rows": rows, "dead": len(dead)}


def overwritten(spark: SparkSession, path: Path) -> dict[str, Any]:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1")
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    dataset(spark, path, 0)
    planned: Iterator[Any] = samples(spark, path).toLocalIterator()
    before = [next(planned)[0] for _ in range(SAMPLES)]
    dataset(spark, path, 1000, "overwrite")
    # What `toLocalIterator` does not wrap as Spark does elsewhere.
    with pytest.raises(Py4JJavaError) as error:
        list(planned)
    return {
        "before": before,
        "error": str(error.value),
        "after": [row[0] for row in samples(spark, path).collect()],
    }


if __name__ == "__main__":
    session = start()
    try:
        folder = Path(sys.argv[1])
        answers = {step.__name__: step(session, folder / step.__name__ / "dataset") for step in (killed, overwritten)}
        print(json.dumps(answers))
    finally:
        session.stop()
