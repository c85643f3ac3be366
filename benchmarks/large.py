"""Reads files of one large tensor with `layout=wide`: whole rows, and a query that takes the bytes out of them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Contender, Options, measure, side_by_side, table
from benchmarks.results import Measure, Table
from benchmarks.sessions import Session
from benchmarks.warm_map import copies

SIZES = (34 << 20, 204 << 20)
TOTAL = 408 << 20


def large(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    tables = []
    for size in SIZES:
        place = folder / f"{size >> 20} MB"
        place.mkdir()
        for number in range(TOTAL // size):
            write(place / f"{number}.safetensors", size)
        for query, work in (("whole rows", rows), ("sum(length)", lengths)):
            contenders = [Contender("copy from a warm map", lambda _, place=place: copies(place), is_ours=False)]  # type: ignore[misc]
            for session in sessions:
                contenders.append(Contender(session.jar.name, session.job(work, str(place)), 0.3, session.is_ours))
            seconds = measure(contenders, options.rounds, folder)
            head = f"{place.name}, {query}"
            tables.append(table(head, head, contenders, seconds, measure=Measure(f"{head}, s", "less")))
    yield side_by_side("large", "Tensors of 34 and 204 MB", tables, "copy from a warm map")


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
