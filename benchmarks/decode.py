"""Reads rows of a training set as they were written, beside structs, `st_to_array` and Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness import Contender, Options, measure, side_by_side, table
from benchmarks.results import Measure, Table
from benchmarks.sessions import Session, run_once

# Arrays of floats, sequences of tokens, and shards of about 100 MB.
WIDTH, TOKENS, SHARD_ROWS = 1024, 200, 16384

# What the columns are.
COLUMNS = {
    "embedding": "1024 floats",
    "half": "the same in F16",
    "tokens": "ragged tokens",
    "text": "text",
    "label": "a number",
}


def decode(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """Each column for itself."""
    session = sessions[0]
    run_once(session.jar, folder / "writer", write, options.rows, str(folder))
    dataset, plain = str(folder / "dataset"), str(folder / "parquet")
    tables = []
    for column, title in COLUMNS.items():
        contenders = [
            Contender("Parquet", session.job(scan_parquet, plain, column), is_ours=False),
            Contender("Tensor Structs", session.job(scan, dataset, column, False)),
            Contender("`decode`", session.job(scan, dataset, column, True)),
        ]
        if column in ("embedding", "half"):
            contenders.append(Contender("`st_to_array`", session.job(scan_arrays, dataset, column)))
        seconds = measure(contenders, options.rounds, folder)
        tables.append(table(column, title, contenders, seconds, measure=Measure(f"{title}, s", "less")))
    yield side_by_side("decode", "Rows with `decode`", tables, None)


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
