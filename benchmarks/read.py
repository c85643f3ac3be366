"""Reads files that the page cache holds, with this jar and, if they are given, one of another version and a peer's."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.decode import decode
from benchmarks.harness import Contender, Options, measure, side_by_side, table
from benchmarks.keys import appends, look_ups
from benchmarks.large import large
from benchmarks.results import Measure, Table
from benchmarks.sessions import Session, jars, run_once, sessions
from benchmarks.warm_map import copies
from benchmarks.write import ROW_BYTES, batches, cached, parquet, writer

Part = Callable[[Sequence[Session], Options, Path], Iterator[Table]]

SHAPES_FILES = 8
LARGE = 100 << 30


def run(options: Options, folder: Path) -> Iterator[Table]:
    parts: dict[str, Part] = {
        "all": everything,
        "decode": decode,
        "large": large,
        "splits": splits,
        "shapes": shapes,
        "look-ups": look_ups,
        "appends": appends,
    }
    with sessions(jars(options), folder / "sessions") as opened:
        for name in options.parts or parts:
            place = folder / name
            place.mkdir()
            # The peer reads tensors of files; the other parts are of datasets.
            able = opened if name == "large" else [session for session in opened if session.jar.reads_datasets]
            yield from parts[name](able, options, place)
            shutil.rmtree(place)


def everything(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """All bytes of embeddings, in each layout."""
    batch, keys, plain = folder / "batch/dataset", folder / "keys/dataset", folder / "parquet/dataset"
    first = sessions[0]
    run_once(first.jar, folder / "writer", write_embeddings, options.rows, str(folder))
    contenders = [Contender("copy from a warm map", lambda _: copies(batch), is_ours=False)]
    for session in sessions:
        contenders += [
            Contender(session.named("layout=rows"), session.job(scan, str(batch), "rows"), 0.7, session.is_ours),
            Contender(session.named("layout=wide"), session.job(scan, str(batch), "wide"), None, session.is_ours),
            Contender(session.named("layout=long"), session.job(scan, str(keys), "long"), 0.5, session.is_ours),
        ]
    contenders.append(Contender("Parquet, uncompressed", first.job(scan_parquet, str(plain)), is_ours=False))
    seconds = measure(contenders, options.rounds, folder)
    yield table("all", "All bytes, by layout", contenders, seconds, options.rows * ROW_BYTES)


def splits(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """The same samples in one shard, which has work for all cores if it is split."""
    run_once(sessions[0].jar, folder / "writer", write_one_shard, options.rows, str(folder))
    shards, one = str(folder / "batch/dataset"), str(folder / "one/dataset")
    contenders = [Contender("shards of 256 MB", sessions[0].job(scan, shards, "rows"))]
    contenders += [
        Contender(session.named("one shard"), session.job(scan, one, "rows"), 0.9, session.is_ours)
        for session in sessions
    ]
    seconds = measure(contenders, options.rounds, folder)
    yield table("splits", "One shard with all samples", contenders, seconds, options.rows * ROW_BYTES)


def shapes(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """The same query over tensors of four bytes and of 100 GiB, which take no room on the disk."""
    tables = []
    for name, size in (("4 bytes", 4), ("100 GiB", LARGE)):
        (folder / name).mkdir()
        for number in range(SHAPES_FILES):
            sparse(folder / name / f"{number}.safetensors", size)
        contenders = [
            Contender(session.jar.name, session.job(dtypes, str(folder / name)), is_ours=session.is_ours)
            for session in sessions
        ]
        seconds = measure(contenders, options.rounds, folder)
        tables.append(table(name, name, contenders, seconds, measure=Measure(f"8 tensors of {name}, s", "less")))
    yield side_by_side("shapes", "Headers alone", tables, None)


def write_embeddings(spark: SparkSession, rows: int, folder: str) -> None:
    embeddings = cached(spark, rows)
    batches(embeddings)(Path(folder, "batch"))
    writer(embeddings, name_col="id")(Path(folder, "keys"))
    parquet(embeddings, Path(folder, "parquet"))
    embeddings.unpersist(blocking=True)


def write_one_shard(spark: SparkSession, rows: int, folder: str) -> None:
    embeddings = cached(spark, rows)
    batches(embeddings)(Path(folder, "batch"))
    writer(embeddings.select("embedding").coalesce(1), batch_size=str(rows))(Path(folder, "one"))
    embeddings.unpersist(blocking=True)


def scan(spark: SparkSession, path: str, layout: str) -> None:
    made(spark.read.format("safetensors").options(layout=layout, inferSchema="true").load(path))


def scan_parquet(spark: SparkSession, path: str) -> None:
    made(spark.read.parquet(path))


def dtypes(spark: SparkSession, path: str) -> None:
    made(spark.read.format("safetensors").option("layout", "long").load(path).select("tensor.dtype"))


def made(df: DataFrame) -> None:
    """Makes every row, and drops it."""
    df.write.format("noop").mode("overwrite").save()


def sparse(file: Path, size: int) -> None:
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with file.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        out.truncate(8 + len(header) + size)
