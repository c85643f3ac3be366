"""Batches of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from safetensors_spark._files.manifest import Kind
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark.dataset._columns import Columns, Gathered, MappedColumn, mapped_column
from safetensors_spark.dataset._forms import Form
from safetensors_spark.dataset._memory import Memory, Own
from safetensors_spark.dataset._ragged import Packed, Padded, Ragged
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import ShardColumn

Batch = dict[str, Any]
NumpyColumn = MappedColumn[np.dtype[Any]]

_TIMES: Mapping[Kind, str] = {
    "date": "datetime64[D]",
    "timestamp": "datetime64[us]",
    "timestamp_ntz": "datetime64[us]",
}


def array_columns(samples: Samples) -> Columns[np.dtype[Any], Array]:
    """The columns of these samples as arrays."""
    return Columns(samples, _view, _new)


def _view(column: ShardColumn) -> NumpyColumn:
    return mapped_column(numpy_dtype(column.dtype), column.shape, column)


def _new(count: int, column: NumpyColumn) -> tuple[Array, Memory]:
    memory = Own(count, column.rows.shape[1])
    return memory.rows.view(column.dtype).reshape(count, *column.shape), memory


def array_dtype(value: Any) -> np.dtype[Any]:
    """A dtype of numbers. Raises `TypeError` for anything else."""
    try:
        # NumPy takes None for float64.
        found: np.dtype[Any] = np.dtype("V" if value is None else value)
    except (TypeError, ValueError):
        found = np.dtype("V")
    if found.kind in "biufc" or found.type.__module__ == "ml_dtypes":
        return found
    raise TypeError(
        f"dtype is {value!r:.100}, expected a dtype of numbers as NumPy has it, such as np.float32 or 'bfloat16'"
    )


def times(kinds: Mapping[str, Kind]) -> Mapping[str, str]:
    """NumPy's types of the columns that are dates and times."""
    return {name: _TIMES[kind] for name, kind in kinds.items() if kind in _TIMES}


def with_times(types: Mapping[str, str], batch: Batch) -> Batch:
    """Days and microseconds as NumPy's dates and times: of the columns that have these types."""
    return batch | {name: batch[name].astype(types[name]) for name in types if name in batch} if types else batch


def finish_arrays(
    types: Mapping[str, str],
    forms: Mapping[str, Form],
    dtype: Mapping[str, np.dtype[Any]] | np.dtype[Any] | None,
    batch: Batch,
) -> Batch:
    """A batch for its consumer: with times, cast, and each ragged column in its form."""
    return {
        name: _in_form(Ragged(_cast(name, value.values, dtype), value.offsets), forms[name])
        if isinstance(value, Gathered)
        else value.tolist()
        if isinstance(value, Ragged)
        else value
        if isinstance(value, int | list)
        else _cast(name, value, dtype)
        for name, value in with_times(types, batch).items()
    }


def _in_form(rows: Ragged, form: Form) -> Ragged | Packed | Padded:
    if form == "nested":
        return rows
    return rows.to_packed() if form == "packed" else rows.to_padded()


def _cast(name: str, array: Array, dtype: Mapping[str, np.dtype[Any]] | np.dtype[Any] | None) -> Array:
    """Casts the columns that a mapping names, or else all columns of floating-point numbers."""
    if isinstance(dtype, Mapping):
        return array.astype(dtype.get(name, array.dtype), copy=False)
    if dtype is None or not _is_floating(array.dtype):
        return array
    return array.astype(dtype, copy=False)


def _is_floating(dtype: np.dtype[Any]) -> bool:
    # NumPy calls the kind of BF16 and of the floats of 8 bits "V".
    return dtype.kind in "fV"
