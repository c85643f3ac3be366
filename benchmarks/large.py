"""Reads files of one large tensor with `layout=wide`: whole rows, and a query that takes the bytes out of them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Contender, Options, measure, table
from benchmarks.sessions import Session
from benchmarks.warm_map import copies

SIZES = (34 << 20, 204 << 20)
TOTAL = 408 << 20


def large(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[str]:
    for size in SIZES:
        place = folder / f"{size >> 20}MB"
        place.mkdir()
        for number in range(TOTAL // size):
            write(place / f"{number}.safetensors", size)
        contenders = [Contender(f"{place.name}: copy from a warm map", lambda _, place=place: copies(place))]  # type: ignore[misc]
        for session in sessions:
            name = f"{place.name}: {session.jar.name}"
            contenders += [
                Contender(f"{name}, rows", session.job(rows, str(place)), 0.3),
                Contender(f"{name}, sum(length(x.data))", session.job(lengths, str(place)), 0.3),
            ]
        yield table(contenders, measure(contenders, options.rounds, folder), TOTAL)


def write(file: Path, size: int) -> None:
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with file.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        out.write(np.random.default_rng(0).bytes(size))


def rows(spark: SparkSession, folder: str) -> None:
    read(spark, folder).write.format("noop").mode("overwrite").save()


def lengths(spark: SparkSession, folder: str) -> None:
    assert read(spark, folder).selectExpr("sum(length(x.data))").collect()[0][0] == TOTAL


def read(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.format("safetensors").option("inferSchema", "true").load(folder)
