"""Converts a dataset of another format, with a process for each core."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from safetensors_spark._convert import hugging_face, mds, megatron, npy, parquet, webdataset
from safetensors_spark._convert.source import Part, Rows, Source, joined
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
    if not place.exists():
        raise InvalidWriteError(f"{path} does not exist. A source must be a local file or folder.")
    raise InvalidWriteError(
        f"{path} is not a dataset of a format that is read: Parquet, .npy, WebDataset (.tar), MDS, Megatron (.bin with "
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
    parts = joined(source.parts(processes * _PARTS_OF_PROCESS), options.get("target_shard_size_mb", 300) * 1_000_000)
    begin(len(parts))
    records: list[WriteRecord] = []
    try:
        for record in _written(parts, partial(_write, os.fspath(path), options), processes):
            records.append(record)
            advance(1)
        _check_columns(records, columns or (), options.get("name_col"))
        return _committed(writer, records, parts)
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


def _committed(writer: DatasetWriter, records: Sequence[WriteRecord], parts: Sequence[Part]) -> Manifest:
    try:
        return writer.commit(records)
    except InvalidWriteError as error:
        # Rows of parts that differ are named by the shards that they are in, which nobody will see.
        text = str(error)
        for record, part in zip(records, parts, strict=True):
            for shard in record.shards:
                if shard.file in text:
                    rows = next(iter(part.rows()))
                    text = text.replace(shard.file, f"{rows.file} from row {rows.first} on")
        raise type(error)(text) from None


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
        for rows in part.rows():
            with _of_source(rows):
                writer.write(rows.batch)
        return writer.finish()
    except BaseException:
        writer.abort()
        raise


@contextmanager
def _of_source(rows: Rows) -> Iterator[None]:
    """Errors name the file, and count rows as it does."""
    try:
        yield
    except InvalidWriteError as error:
        text = re.sub(r"(?<=, row )\d+(?=: )", lambda row: str(rows.first + int(row[0])), str(error), count=1)
        place = rows.file if text != str(error) or not rows.first else f"{rows.file} from row {rows.first} on"
        raise type(error)(f"{place}: {text}") from error
