"""Reads embeddings from files that the page cache holds: the layouts, Parquet, and copying from a map as the limit."""

import json
import mmap
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Contender, measure, table
from benchmarks.write import CORES, ROW_BYTES, SHARD_BYTES, batches, cached, parquet, session, writer

SHAPES_FILES = 8
LARGE = 100 << 30


def run(rows: int, rounds: int, folder: Path) -> Iterator[str]:
    """All bytes; shapes alone; a key of many."""
    spark = session(folder)
    try:
        for name, benchmark in (("all", everything), ("shapes", shapes), ("key", one_key)):
            place = folder / name
            place.mkdir()
            yield benchmark(spark, rows, rounds, place)
            shutil.rmtree(place)
    finally:
        spark.stop()


def everything(spark: SparkSession, rows: int, rounds: int, folder: Path) -> str:
    embeddings = cached(spark, rows)
    for name, write in (
        ("batch", batches(embeddings)),
        ("keys", writer(embeddings, name_col="id")),
        ("parquet", lambda place: parquet(embeddings, place)),
    ):
        write(folder / name)
    embeddings.unpersist(blocking=True)
    batch, keys = folder / "batch/dataset", folder / "keys/dataset"
    contenders = [
        Contender("copy from a warm map", lambda _: copies(batch)),
        Contender("batch_size, layout=rows", query(read(spark, batch, "rows")), 0.5),
        Contender("batch_size, layout=wide", query(read(spark, batch, "wide"))),
        Contender("name_col, layout=long", query(read(spark, keys, "long")), 0.5),
        Contender("Parquet, uncompressed", query(spark.read.parquet(str(folder / "parquet/dataset")))),
    ]
    return table(contenders, measure(contenders, rounds, folder), rows * ROW_BYTES)


def shapes(spark: SparkSession, _: int, rounds: int, folder: Path) -> str:
    """The same query over tensors of four bytes and of 100 GiB, which take no room on the disk."""
    for name, size in (("small", 4), ("large", LARGE)):
        (folder / name).mkdir()
        for number in range(SHAPES_FILES):
            sparse(folder / name / f"{number}.safetensors", size)
    contenders = [
        Contender("shapes of small tensors", query(read(spark, folder / "small", "long").select("tensor.dtype"))),
        Contender("shapes of large tensors", query(read(spark, folder / "large", "long").select("tensor.dtype"))),
    ]
    return table(contenders, measure(contenders, rounds, folder), 0)


def one_key(spark: SparkSession, rows: int, rounds: int, folder: Path) -> str:
    """Of twice as many keys as there are rows elsewhere: a million."""
    data = f"cast(rpad(cast(id as string), {ROW_BYTES}, '.') as binary)"
    tensor = f"named_struct('data', {data}, 'shape', array({ROW_BYTES}), 'dtype', 'U8') tensor"
    tensors = spark.range(0, 2 * rows, 1, CORES).selectExpr("id", tensor)
    writer(tensors, name_col="id", generate_index="true")(folder)
    keys = read(spark, folder / "dataset", "long")
    contenders = [
        Contender("all keys", query(keys)),
        Contender("one key, by the index", query(keys.where(f"tensor_key = '{rows}'")), 20),
    ]
    return table(contenders, measure(contenders, rounds, folder), 2 * rows * ROW_BYTES)


def read(spark: SparkSession, path: Path, layout: str) -> DataFrame:
    return spark.read.format("safetensors").options(layout=layout, inferSchema="true").load(str(path))


def query(df: DataFrame) -> Callable[[Path], None]:
    """Makes every row, and drops it."""
    return lambda _: df.write.format("noop").mode("overwrite").save()


def copies(folder: Path) -> None:
    """All bytes of the files, a row's at a time, by as many threads."""
    files = sorted(folder.glob("*.safetensors"))
    with ThreadPoolExecutor(CORES) as threads:
        list(threads.map(copy, files))


def copy(file: Path) -> None:
    target = np.empty(SHARD_BYTES // 64, np.uint8)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        source = np.frombuffer(mapped, np.uint8)
        for begin in range(0, len(source), len(target)):
            part = source[begin : begin + len(target)]
            target[: len(part)] = part
        # The map cannot be closed while an array looks at it.
        del source, part


def sparse(file: Path, size: int) -> None:
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with file.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        out.truncate(8 + len(header) + size)
