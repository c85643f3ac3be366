"""Reads the files of a run for a report. What is missing or damaged is one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError, printable
from safetensors_spark.factory._places import parquet_file

SHOWN = 120

_AGAIN = "Run the pipeline with mode='overwrite' to make it again"


@contextmanager
def reading(path: str) -> Iterator[None]:
    """What fails in the block is told of this file. Raises `PipelineError`."""
    try:
        yield
    except FileNotFoundError:
        raise PipelineError(f"{path} is missing, which the stage's manifest names. {_AGAIN}.") from None
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        # Arrow's have no number of the system's: they are of what is in the file.
        if isinstance(error, OSError) and error.errno is not None:
            raise PipelineError(
                f"{path} cannot be read: {error.strerror}. Make it readable, or name a copy of the run."
            ) from None
        told = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(".")
        raise PipelineError(f"{path} is damaged, or not what a run has written ({told:.200}). {_AGAIN}.") from error


def batches(path: str, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """These columns of a Parquet file, so many rows at a time."""
    with reading(path), parquet_file(path) as file:
        for name in columns:
            if name not in file.schema_arrow.names:
                raise ValueError(f"it has no column `{name}`")
        yield from file.iter_batches(rows, columns=list(columns))


def schema_of(path: str) -> pa.Schema:
    """The columns of a Parquet file."""
    with reading(path), parquet_file(path) as file:
        return file.schema_arrow


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def short(text: Any) -> str:
    """A text in one line, for terminals and pages."""
    # What would move a terminal's cursor, or turn a page's text around, is shown as its number.
    line = printable(re.sub(r"\s+", " ", str(text)[: 4 * SHOWN]).strip())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
