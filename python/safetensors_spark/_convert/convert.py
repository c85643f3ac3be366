"""Converts a dataset of another format, with a process for each core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from safetensors_spark._convert import hugging_face, mds, megatron, npy, parquet, webdataset
from safetensors_spark._convert.source import Part, Source
from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Manifest
from safetensors_spark.dataset import DatasetWriter, WriteRecord

# In this order: those come first that other formats could be taken for.
FORMATS: tuple[Any, ...] = (hugging_face, mds, megatron, parquet, webdataset, npy)

# So many that processes end at about the same time, and so few that each fills shards.
_PARTS_OF_PROCESS = 4

Advance = Callable[[int], object]


def source_of(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Source:
    """The dataset at the path. Raises `InvalidWriteError` for a format that is not known."""
    place = Path(path)
    for one in FORMATS:
        found: Source | None = one.find(place, None if columns is None else tuple(columns))
        if found:
            return found
    raise InvalidWriteError(
        f"{path} is no dataset of a format that is read: Parquet, .npy, WebDataset (.tar), MDS, Megatron (.bin with "
        ".idx), or a folder of Hugging Face's `save_to_disk`."
    )


def convert(
    source: Source,
    path: str | os.PathLike[str],
    processes: int,
    options: dict[str, Any],
    begin: Advance = lambda _: None,
    advance: Advance = lambda _: None,
    columns: Sequence[str] | None = None,
) -> Manifest:
    """Write the source as a dataset: all of it, or nothing.

    Args:
        options: those of `DatasetWriter`.
        begin: gets the number of parts.
        advance: gets the number of parts that are done, after each.
        columns: those that the source was asked for, which must be there.
    """
    if "name_col" not in options:
        options = options | {"ragged": sorted({*source.ragged(), *options.get("ragged", ())})}
    writer = DatasetWriter(path, **options)
    parts = source.parts(processes * _PARTS_OF_PROCESS)
    begin(len(parts))
    records: list[WriteRecord] = []
    try:
        for record in _written(parts, partial(_write, os.fspath(path), options), processes):
            records.append(record)
            advance(1)
        _check_columns(records, columns or (), options.get("name_col"))
        return writer.commit(records)
    except BaseException:
        for record in records:
            writer.discard(record)
        raise


def _check_columns(records: Sequence[WriteRecord], columns: Sequence[str], name_col: str | None) -> None:
    found = list(dict.fromkeys(column.name for record in records for column in record.columns))
    for name in columns:
        if name not in found and name != name_col:
            there = f"; the others are {', '.join(found)}" if found else ""
            raise InvalidWriteError(f"The source has no column `{name}`{there}. Nothing was written.")


def _written(parts: Sequence[Part], write: Callable[[int, Part], WriteRecord], processes: int) -> Iterable[WriteRecord]:
    if processes == 1 or len(parts) < 2:
        yield from map(write, range(len(parts)), parts)
        return
    # A forked process would share the threads of Arrow, which it has not.
    with ProcessPoolExecutor(min(processes, len(parts)), get_context("spawn")) as pool:
        yield from pool.map(write, range(len(parts)), parts)


def _write(path: str, options: dict[str, Any], number: int, part: Part) -> WriteRecord:
    writer = DatasetWriter(path, **options | {"partition": number})
    try:
        for batch in part.batches():
            writer.write(batch)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise
