"""What `write` takes: a batch of rows, as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Mode
from safetensors_spark.dataset._write.arrow_values import chunk_of_arrow
from safetensors_spark.dataset._write.chunk import Chunk
from safetensors_spark.dataset._write.values import chunk_of_values, null_in

_Convert = Callable[[str, Any, bool], Chunk]


def is_batch(value: Any) -> bool:
    """Whether it is a batch of rows, by its type."""
    return isinstance(value, Mapping) or _is_frame(value) or _is_arrow(value)


def _is_frame(value: Any) -> bool:
    return _package(value) == "pandas" and hasattr(value, "iloc") and hasattr(value, "columns")


def _is_arrow(value: Any) -> bool:
    return _package(value) == "pyarrow" and hasattr(value, "column_names")


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def columns_of(batch: Any) -> tuple[dict[str, Any], _Convert]:
    """The columns of a batch by name, and what makes rows of one."""
    if isinstance(batch, Mapping):
        return _named(batch.keys(), batch.values()), chunk_of_values
    if _is_frame(batch):
        series = (batch.iloc[:, number] for number in range(len(batch.columns)))
        return _named(batch.columns, series), _chunk_of_series
    if _is_arrow(batch):
        return _named(batch.column_names, batch.columns), chunk_of_arrow
    raise InvalidWriteError(
        f"A batch is a {type(batch).__name__}, expected a dictionary of columns, a DataFrame of pandas, or a Table or "
        "RecordBatch of Arrow."
    )


def _named(names: Iterable[Any], columns: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column in zip(map(str, names), columns, strict=True):
        if name in found:
            raise InvalidWriteError(f"A batch has two columns `{name}`. Rename one.")
        found[name] = column
    return found


def chunks_of(columns: Mapping[str, Any], convert: _Convert, ragged: Collection[str]) -> list[Chunk]:
    """The rows of all columns. Raises `InvalidWriteError` unless they have the same number of rows."""
    chunks = [convert(name, values, name in ragged) for name, values in columns.items()]
    if len({len(chunk) for chunk in chunks}) > 1:
        lengths = ", ".join(f"`{chunk.column.name}` {len(chunk)}" for chunk in chunks)
        raise InvalidWriteError(f"The columns of a batch have different numbers of rows: {lengths}.")
    return chunks


def check_names(names: Collection[str], mode: Mode) -> None:
    """Raise `InvalidWriteError` for names that readers could not tell apart, or not find."""
    lower: dict[str, str] = {}
    for name in names:
        other = lower.setdefault(name.lower(), name)
        if other != name:
            raise InvalidWriteError(
                f"Columns `{other}` and `{name}` differ only in case, and Spark could not tell their tensors apart "
                "when it reads them. Rename one."
            )
        if name == "__metadata__" and mode == "batch":
            raise InvalidWriteError(
                "Column `__metadata__` would be a tensor that no reader finds: the format keeps that name. Rename it."
            )


def _chunk_of_series(name: str, series: Any, is_ragged: bool) -> Chunk:
    if hasattr(series.dtype, "pyarrow_dtype"):
        return chunk_of_arrow(name, series.array.__arrow_array__(), is_ragged)
    empty = series.isna()
    # In NumPy's floats what pandas calls missing is a number that is none.
    if empty.any() and not (isinstance(series.dtype, np.dtype) and series.dtype.kind == "f"):
        raise null_in(name, int(empty.to_numpy().argmax()))
    if getattr(series.dtype, "tz", None) is not None:
        chunk = chunk_of_values(name, series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), False)
        return replace(chunk, column=replace(chunk.column, kind="timestamp", type="timestamp"))
    values = series.to_numpy()
    if values.dtype.kind == "O" and hasattr(series.dtype, "numpy_dtype"):
        values = series.to_numpy(series.dtype.numpy_dtype)
    return chunk_of_values(name, values.tolist() if values.dtype.kind == "O" else values, is_ragged)
