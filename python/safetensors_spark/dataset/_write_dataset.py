"""Writes a dataset in one call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from importlib.util import find_spec
from typing import Any

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Manifest
from safetensors_spark.dataset._write.batches import is_batch
from safetensors_spark.dataset._writer import DatasetWriter


def write_dataset(
    batches: Any, path: str | os.PathLike[str], *, progress: bool | None = None, **options: Any
) -> Manifest:
    """Write batches, or a single one, to a dataset: all of them or, if anything fails, none. Returns the manifest.

        write_dataset(({"x": rows} for rows in source), "points", batch_size=1024)

    Args:
        batches: a batch as for `DatasetWriter.write`, or an iterable of batches, which is consumed one at a time.
        path: a local directory, or an fsspec URL.
        progress: show a progress bar; by default if the standard error is a terminal and `rich` is installed.
        options: options of `DatasetWriter`.

    Raises what `DatasetWriter` raises.
    """
    if is_batch(batches):
        batches = (batches,)
    elif not isinstance(batches, Iterable):
        raise InvalidWriteError(
            f"The batches are a {type(batches).__name__}, expected a batch, or an iterable of them."
        )
    writer = DatasetWriter(path, **options)
    try:
        for batch in _drawn(batches, progress):
            writer.write(batch)
        return writer.commit([writer.finish()])
    except BaseException:
        writer.abort()
        raise


def _drawn(batches: Iterable[Any], progress: bool | None) -> Iterator[Any]:
    """The same batches, with a bar that counts them."""
    if not (progress or (progress is None and sys.stderr.isatty() and find_spec("rich"))):
        yield from batches
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    total = len(batches) if isinstance(batches, Sized) else None
    columns = (TextColumn("batches"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(batches, total=total)
