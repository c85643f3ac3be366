"""Writes a dataset as a folder of Parquet files, one for each shard."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Column, Manifest
from safetensors_spark.dataset import Ragged, open_dataset

_ROWS = 1024


def to_parquet(
    path: str | os.PathLike[str],
    manifest: Manifest,
    target: str | os.PathLike[str],
    processes: int,
    advance: Callable[[int], object] = lambda _: None,
) -> None:
    """Write the batch dataset at the path. The folder appears when all of it is written.

    Raises `InvalidWriteError` for a folder that is there, and for a dataset by key.
    """
    place = Path(target)
    if place.exists():
        raise InvalidWriteError(f"{place} exists already. Name another path.")
    if manifest.mode != "batch":
        raise InvalidWriteError(f"{path} was written by key, and Parquet has rows. Convert a dataset of batches.")
    draft = place.with_name(f".{place.name}.{uuid4()}.tmp")
    draft.mkdir(parents=True)
    try:
        starts = [sum(shard.samples or 0 for shard in manifest.shards[:at]) for at in range(len(manifest.shards))]
        work = partial(_write, os.fspath(path), manifest.columns, draft)
        counts = [shard.samples or 0 for shard in manifest.shards]
        with ProcessPoolExecutor(max(1, min(processes, len(counts))), get_context("spawn")) as pool:
            for _ in pool.map(work, range(len(counts)), starts, counts):
                advance(1)
        draft.rename(place)
    except BaseException:
        rmtree(draft, ignore_errors=True)
        raise


def _write(path: str, columns: tuple[Column, ...], folder: Path, number: int, start: int, count: int) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    dataset = open_dataset(path)
    writer = None
    for at in range(start, start + count, _ROWS):
        rows = dataset[at : min(at + _ROWS, start + count)]
        table = pa.table({column.name: _arrow_of(column, rows[column.name]) for column in columns})
        if writer is None:
            writer = pq.ParquetWriter(folder / f"part-{number:05d}.parquet", table.schema)
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
