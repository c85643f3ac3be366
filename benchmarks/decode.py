"""Reads rows of a training set as they were written, beside structs, `st_to_array` and Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Contender, Options, measure, table
from benchmarks.sessions import Session, run_once

# Arrays of floats, sequences of tokens, and shards of about 100 MB.
WIDTH, TOKENS, SHARD_ROWS = 1024, 200, 16384

# Bytes of a row, on average.
SIZES = {"embedding": 4 * WIDTH, "half": 2 * WIDTH, "tokens": 4 * TOKENS, "text": 80, "label": 8}


def decode(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[str]:
    """Each column for itself."""
    session = sessions[0]
    run_once(session.jar, folder / "writer", write, options.rows, str(folder))
    dataset, plain = str(folder / "dataset"), str(folder / "parquet")
    for column, size in SIZES.items():
        contenders = [
            Contender(f"Parquet, {column}", session.job(scan_parquet, plain, column)),
            Contender(f"structs, {column}", session.job(scan, dataset, column, False)),
            Contender(f"decode, {column}", session.job(scan, dataset, column, True)),
        ]
        if column in ("embedding", "half"):
            contenders.append(Contender(f"st_to_array, {column}", session.job(scan_arrays, dataset, column)))
        yield table(contenders, measure(contenders, options.rounds, folder), options.rows * size)


def write(spark: SparkSession, rows: int, folder: str) -> None:
    floats = f"transform(sequence(0, {WIDTH - 1}), i -> cast(hash(id, i) / 2147483648D as float))"
    tokens = f"transform(sequence(1, 1 + pmod(hash(id), {2 * TOKENS})), i -> cast(i * id % 50000 as int))"
    source = spark.range(0, rows, 1, 2).selectExpr(
        f"{floats} embedding",
        f"{floats} half",
        f"{tokens} tokens",
        "repeat(md5(cast(id as string)), cast(2 + id % 2 as int)) text",
        "id label",
    )
    writer = source.write.format("safetensors").options(batch_size=str(SHARD_ROWS), ragged="tokens")
    writer.option("dtype", '{"half": "F16"}').mode("append").save(f"{folder}/dataset")
    source.write.option("compression", "none").parquet(f"{folder}/parquet")


def read(spark: SparkSession, path: str, *, is_decoded: bool) -> DataFrame:
    reader = spark.read.format("safetensors").options(layout="rows", inferSchema="true", decode=str(is_decoded))
    return reader.load(path)


def scan(spark: SparkSession, path: str, column: str, is_decoded: bool) -> None:
    drop(read(spark, path, is_decoded=is_decoded).select(column))


def scan_arrays(spark: SparkSession, path: str, column: str) -> None:
    drop(read(spark, path, is_decoded=False).selectExpr(f"st_to_array({column}) {column}"))


def scan_parquet(spark: SparkSession, path: str, column: str) -> None:
    drop(spark.read.parquet(path).select(column))


def drop(df: DataFrame) -> None:
    """Makes every row, and drops it."""
    df.write.format("noop").mode("overwrite").save()
