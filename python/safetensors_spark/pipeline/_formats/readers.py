"""Records of one file, by its format: for `flat_map`, and for functions of one's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._formats.reading import Bad, format_of, raise_error
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._source import FilePart, SampleRange


def read(path: Any, load: Load, bad: Bad = raise_error) -> Iterator[Any]:
    """The records of a file, as `load` says.

    Args:
        path: of the file, a part of a file, or samples of a dataset.
        bad: gets a record that cannot be read, and the error.
    """
    if isinstance(path, FilePart):
        return _of_part(path, load, bad)
    if isinstance(path, SampleRange):
        from safetensors_spark.pipeline._formats.safetensors import samples_of

        return samples_of(path, load, bad)
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str):
        raise PipelineError(f"a row is a {type(path).__name__}, but the files to load are named by their paths")
    return _reader(path, load)(path, load, bad)


def _of_part(part: FilePart, load: Load, bad: Bad) -> Iterator[Any]:
    # And again behind it, since the file may be replaced or written to meanwhile.
    part.check()
    yield from _reader(part.path, load)(part.path, load, bad, part)
    part.check()


def _reader(path: str, load: Load) -> Callable[..., Iterator[Any]]:
    # Each format needs a library of its own.
    kind = format_of(path) if load.format == "file" else load.format
    module: Any = import_module(f"safetensors_spark.pipeline._formats.{kind}")
    read: Callable[..., Iterator[Any]] = module.read
    return read


def load_file(path: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a file in the format that its suffix tells."""
    return read(path, _load("file", columns))


def load_jsonl(path: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """A record of each line of a JSON file, which may be compressed: `.gz`, `.zst`, `.xz` or `.bz2`."""
    return read(path, _load("jsonl", columns))


def load_parquet(path: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a Parquet file."""
    return read(path, _load("parquet", columns))


def load_vortex(path: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a Vortex file."""
    return read(path, _load("vortex", columns))


# How `flat_map` knows them, so that filters behind them are pushed.
load_file.load_format = "file"  # type: ignore[attr-defined]
load_jsonl.load_format = "jsonl"  # type: ignore[attr-defined]
load_parquet.load_format = "parquet"  # type: ignore[attr-defined]
load_vortex.load_format = "vortex"  # type: ignore[attr-defined]


def _load(kind: str, columns: Sequence[str] | None) -> Load:
    return Load(kind, None if columns is None else tuple(dict.fromkeys(columns)))
