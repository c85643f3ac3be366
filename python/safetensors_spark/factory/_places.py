"""Where a run's files are: on this machine, or where an fsspec URL points."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from safetensors_spark.pipeline._formats.parquet import dataset_filesystem
from safetensors_spark.pipeline._paths import files_of


def is_remote(place: str) -> bool:
    return "://" in place


def place_of(out: str | os.PathLike[str]) -> str:
    """The folder of a run, which names the same one wherever a task runs."""
    return str(out).rstrip("/") if is_remote(str(out)) else str(Path(out).expanduser().absolute())


@contextmanager
def parquet_file(path: str) -> Iterator[Any]:
    """The open `pyarrow.parquet.ParquetFile` of a path or a URL."""
    files, place = files_of(path)
    with pq.ParquetFile(place, filesystem=dataset_filesystem(files)) as file:
        yield file
