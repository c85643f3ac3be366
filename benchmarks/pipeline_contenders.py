"""How each library reads JSON lines, keeps those with a score, adds two columns, and writes; by two workers.

Each function prepares, and returns the work. It imports its library, in a process that has none of the others.
"""

import gzip
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

WORKERS = 2
LEAST = 0.5
COLUMNS = ("id", "url", "score", "text")

Record = dict[str, Any]
# Takes the folder of the input, that of the output, and one for what else is needed.
Start = Callable[[Path, Path, Path], object]


def keeps(record: Record) -> bool:
    return bool(record["score"] > LEAST)


def with_words(record: Record) -> Record:
    return {**record, "words": len(record["text"].split())}


def with_digest(record: Record) -> Record:
    return {**record, "md5": hashlib.md5(record["text"].encode()).hexdigest()}


def selected(record: Record) -> Record:
    return {name: record[name] for name in COLUMNS}


def inputs(source: Path) -> list[str]:
    return sorted(map(str, source.glob("*.jsonl.gz")))


# --- plain Python ---


def multiprocessing(kind: str, expressions: bool = False, isal: bool = False) -> Start:
    """Args:
    isal: decompress by the library that pipelines use, which shows what is left for the loop itself.
    """
    from multiprocessing import get_context

    def work(source: Path, out: Path, _: Path) -> None:
        out.mkdir()
        with get_context("spawn").Pool(WORKERS) as pool:
            # One at a time, in the order of their names, as a pipeline does.
            for _done in pool.imap(partial(_one_file, kind, expressions, isal, out), inputs(source), 1):
                pass

    return work


def _one_file(kind: str, expressions: bool, isal: bool, out: Path, path: str) -> None:
    records: Iterator[Record] = filter(keeps, _parsed(path, isal))
    records = map(selected, records) if expressions else map(with_digest, map(with_words, records))
    place = out / f"{Path(path).name.partition('.')[0]}.{'jsonl.gz' if kind == 'jsonl' else kind}"
    if kind == "jsonl":
        _write_lines(records, place)
    else:
        _write_parquet(records, place)


def _parsed(path: str, isal: bool) -> Iterator[Record]:
    import orjson
    from isal import igzip

    with igzip.open(path) if isal else gzip.open(path) as lines:  # type: ignore[no-untyped-call]
        for line in lines:
            yield orjson.loads(line)


def _write_lines(records: Iterable[Record], place: Path) -> None:
    import orjson

    # The level of `write_jsonl`.
    with gzip.open(place, "wb", 6) as lines:
        for record in records:
            lines.write(orjson.dumps(record) + b"\n")


def _write_parquet(records: Iterable[Record], place: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    writer, some = None, []
    for record in records:
        some.append(record)
        if len(some) == 10_000:
            table = pa.Table.from_pylist(some)
            writer = writer or pq.ParquetWriter(place, table.schema)
            writer.write_table(table)
            some = []
    if some:
        table = pa.Table.from_pylist(some)
        writer = writer or pq.ParquetWriter(place, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


# --- this project ---


def processes(kind: str, expressions: bool = False) -> Start:
    from safetensors_spark.pipeline import create_backend

    return partial(_pipeline, create_backend("processes", max_parallelism=WORKERS), kind, expressions)


def on_ray(kind: str) -> Start:
    import ray

    from safetensors_spark.pipeline import create_backend

    ray.init("local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    return partial(_pipeline, create_backend("ray", max_parallelism=WORKERS), kind, False)


def on_spark(kind: str) -> Start:
    from safetensors_spark.pipeline import create_backend

    _session()
    return partial(_pipeline, create_backend("spark", max_parallelism=WORKERS), kind, False)


def _pipeline(backend: Any, kind: str, expressions: bool, source: Path, out: Path, _: Path) -> None:
    from safetensors_spark.pipeline import Dataset, col, load_jsonl

    records = Dataset.from_files(source, "*.jsonl.gz").flat_map(load_jsonl).filter(col("score") > LEAST)
    made = records.select(*COLUMNS) if expressions else records.map(with_words).map(with_digest)
    place = f"{out}/{{shard:05d}}.{'jsonl.gz' if kind == 'jsonl' else kind}"
    list(backend.execute(made.write_jsonl(place) if kind == "jsonl" else made.write_parquet(place)))


# --- others ---


def datatrove(kind: str) -> Start:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.filters import LambdaFilter
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter, ParquetWriter

    def work(source: Path, out: Path, cache: Path) -> None:
        writer = JsonlWriter(str(out), compression="gzip") if kind == "jsonl" else ParquetWriter(str(out))
        LocalPipelineExecutor(
            pipeline=[
                JsonlReader(str(source), glob_pattern="*.jsonl.gz"),
                LambdaFilter(_keeps_document),
                _documents_with_columns,
                writer,
            ],
            tasks=len(inputs(source)),
            workers=WORKERS,
            logging_dir=str(cache),
        ).run()

    return work


def _keeps_document(document: Any) -> bool:
    return bool(document.metadata["score"] > LEAST)


def _documents_with_columns(documents: Iterable[Any], rank: int, world_size: int) -> Iterator[Any]:
    for document in documents:
        document.metadata["words"] = len(document.text.split())
        document.metadata["md5"] = hashlib.md5(document.text.encode()).hexdigest()
        yield document


def ray_data(kind: str) -> Start:
    import ray

    ray.init("local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def work(source: Path, out: Path, _: Path) -> None:
        found = ray.data.read_json(inputs(source)).filter(keeps).map(with_words).map(with_digest)
        if kind == "jsonl":
            found.write_json(str(out), arrow_open_stream_args={"compression": "gzip"})
        else:
            found.write_parquet(str(out))

    return work


def daft(kind: str, expressions: bool = False) -> Start:
    import daft as library
    from daft import DataType, col

    def in_batches(texts: Any) -> list[str]:
        return [hashlib.md5(text.encode()).hexdigest() for text in texts.to_pylist()]

    digests = library.func.batch(return_dtype=DataType.string())(in_batches)

    def work(source: Path, out: Path, _: Path) -> None:
        found = library.read_json(f"{source}/*.jsonl.gz").where(col("score") > LEAST)
        if expressions:
            found = found.select(*COLUMNS)
        else:
            words = library.functions.list_count(library.functions.regexp_split(col("text"), r"\s+"))
            found = found.with_column("words", words).with_column("md5", digests(col("text")))
        # It does not compress JSON.
        (found.write_json if kind == "jsonl" else found.write_parquet)(str(out))

    return work


def hf_datasets(kind: str) -> Start:
    import datasets

    datasets.disable_progress_bars()

    def work(source: Path, out: Path, cache: Path) -> None:
        out.mkdir()
        found = datasets.load_dataset(
            "json", data_files=inputs(source), split="train", cache_dir=str(cache), num_proc=WORKERS
        )
        found = (
            found.filter(keeps, num_proc=WORKERS).map(with_words, num_proc=WORKERS).map(with_digest, num_proc=WORKERS)
        )
        if kind == "jsonl":
            found.to_json(out / "all.jsonl.gz", num_proc=WORKERS, compression="gzip")
        else:
            found.to_parquet(out / "all.parquet")

    return work


def pyspark(kind: str, expressions: bool = False) -> Start:
    from pyspark.sql import functions as F

    spark = _session()

    def work(source: Path, out: Path, _: Path) -> None:
        found = spark.read.json(f"{source}/*.jsonl.gz").where(F.col("score") > LEAST)
        if expressions:
            found = found.select(*COLUMNS)
        else:
            # As its users would: functions of its own, and not of Python.
            found = found.withColumn("words", F.size(F.split(F.trim("text"), r"\s+"))).withColumn("md5", F.md5("text"))
        if kind == "jsonl":
            found.write.json(str(out), compression="gzip")
        else:
            found.write.parquet(str(out))

    return work


def _session() -> Any:
    from pyspark.sql import SparkSession

    # Else Spark takes the `python3` of the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
