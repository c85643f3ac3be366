"""Writes embeddings from NumPy by several processes: `DatasetWriter` in both modes, and plain files as the limit."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Options, measure, place_of, table
from benchmarks.results import Table
from benchmarks.write import CORES, ROW_BYTES, SHARD_BYTES, WIDTH
from safetensors_spark.dataset import DatasetWriter, WriteRecord

# Rows of a batch, which are made once.
BATCH = 8192
# Bytes of one call that writes a plain file: larger ones are slower on some disks.
PIECE = 1 << 20


def run(options: Options, folder: Path) -> Iterator[Table]:
    rows = options.rows
    # The processes are there before the clock starts.
    with ProcessPoolExecutor(CORES, get_context("spawn")) as pool:
        list(pool.map(warm, range(2 * CORES)))
        contenders = [
            Contender("plain files", partial(plain_files, pool, rows), is_ours=False),
            Contender("`batch_size`", partial(dataset, pool, rows, {"batch_size": SHARD_BYTES // ROW_BYTES}), 0.7),
            Contender("`name_col`", partial(dataset, pool, rows, {"name_col": "id"})),
            Contender(
                "`name_col`, `generate_index`", partial(dataset, pool, rows, {"name_col": "id", "generate_index": True})
            ),
        ]
        seconds, place = measure(contenders, options.rounds, folder), place_of(folder)
        yield table(place, f"`DatasetWriter`, {place}", contenders, seconds, rows * ROW_BYTES)


def warm(_: int) -> int:
    return len(embeddings())


def embeddings(made: list[Any] = []) -> Any:  # noqa: B006 (kept in each process)
    if not made:
        made.append(np.random.default_rng(1).random((BATCH, WIDTH), dtype=np.float32))
    return made[0]


def by_process(pool: ProcessPoolExecutor, rows: int, write: Callable[[int, int, int], Any]) -> list[Any]:
    """What the processes return, each for an equal share of the rows."""
    bounds = [rows * number // CORES for number in range(CORES + 1)]
    return list(pool.map(write, range(CORES), bounds[:-1], bounds[1:]))


def plain_files(pool: ProcessPoolExecutor, rows: int, folder: Path) -> None:
    by_process(pool, rows, partial(write_plain, folder))


def write_plain(folder: Path, number: int, start: int, end: int) -> None:
    """The same bytes in files of the same size."""
    of_file = SHARD_BYTES // ROW_BYTES
    for first in range(start, end, of_file):
        with (folder / f"{number}-{first}.bin").open("wb", buffering=0) as file:
            for at in range(first, min(first + of_file, end), BATCH):
                batch = memoryview(embeddings()[: min(BATCH, end - at)]).cast("B")
                for begin in range(0, len(batch), PIECE):
                    file.write(batch[begin : begin + PIECE])
            os.fsync(file.fileno())


def dataset(pool: ProcessPoolExecutor, rows: int, options: dict[str, Any], folder: Path) -> None:
    records = by_process(pool, rows, partial(write_part, folder / "dataset", options))
    DatasetWriter(folder / "dataset", **options).commit(records)


def write_part(path: Path, options: dict[str, Any], number: int, start: int, end: int) -> WriteRecord:
    writer = DatasetWriter(path, **options, partition=number)
    for at in range(start, end, BATCH):
        batch: dict[str, Any] = {"embedding": embeddings()[: min(BATCH, end - at)]}
        if "name_col" in options:
            batch["id"] = [str(row) for row in range(at, min(at + BATCH, end))]
        writer.write(batch)
    return writer.finish()
