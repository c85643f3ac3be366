"""Writes a dataset as a folder of Parquet files, one for each shard."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Column
from safetensors_spark.dataset import Dataset, Ragged, open_dataset

_ROWS = 1024

# In a process that writes: what it reads.
_opened: Dataset


def to_parquet(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    processes: int,
    begin: Callable[[int], object] = lambda _: None,
    advance: Callable[[int], object] = lambda _: None,
    columns: Sequence[str] | None = None,
) -> int:
    """Write the batch dataset at the path, or the folder of partitions, whose values become columns.

    The folder appears when all of it is written. Returns the number of rows.

    Args:
        begin: gets the number of shards.
        advance: gets the number of shards that are done, after each.
        columns: those to write, all by default.

    Raises `InvalidWriteError` for a folder that is there and for a dataset without rows, and what `open_dataset`
    raises.
    """
    place = Path(target)
    if place.exists():
        raise InvalidWriteError(f"{place} exists already. Name another path.")
    dataset = open_dataset(path, columns=columns)
    if not len(dataset):
        raise InvalidWriteError(f"{os.fspath(path)} has no rows, and so no columns that Parquet files could have.")
    counts = [shard.samples or 0 for shard in dataset.shards]
    starts = [sum(counts[:at]) for at in range(len(counts))]
    begin(len(counts))
    draft = place.with_name(f".{place.name}.{uuid4()}.tmp")
    draft.mkdir(parents=True)
    try:
        workers = max(1, min(processes, len(counts)))
        with ProcessPoolExecutor(workers, get_context("spawn"), _open, (dataset,)) as pool:
            files = [draft / f"part-{number:05d}.parquet" for number in range(len(counts))]
            for _ in pool.map(_write, files, starts, counts):
                advance(1)
        draft.rename(place)
    except BaseException:
        rmtree(draft, ignore_errors=True)
        raise
    return len(dataset)


def _open(dataset: Dataset) -> None:
    global _opened
    _opened = dataset


def _write(file: Path, start: int, count: int) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    writer = None
    for at in range(start, start + count, _ROWS):
        rows = _opened[at : min(at + _ROWS, start + count)]
        table = pa.table({column.name: _arrow_of(column, rows[column.name]) for column in _opened.columns})
        if writer is None:
            writer = pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def _arrow_of(column: Column, values: Any) -> Any:
    """The rows of a column with the type that they had."""
    import pyarrow as pa

    if isinstance(values, Ragged):
        return values.to_arrow()
    if column.kind in ("date", "timestamp", "timestamp_ntz"):
        kinds = {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
        numbers = values.view("i8") if values.dtype.kind == "M" else values
        return pa.array(numbers.astype("i4") if column.kind == "date" else numbers).cast(kinds[column.kind])
    array = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
