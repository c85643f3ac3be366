"""Batches of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark.dataset._columns import Columns, MappedColumn, mapped_column
from safetensors_spark.dataset._memory import Memory, Own
from safetensors_spark.dataset._samples import Samples

Batch = dict[str, Array]
NumpyColumn = MappedColumn[np.dtype[Any]]


def array_columns(samples: Samples) -> Columns[np.dtype[Any], Array]:
    """The columns of these samples as arrays."""
    return Columns(samples, _view, _new)


def _view(dtype: str, shape: tuple[int, ...], data: Array) -> NumpyColumn:
    return mapped_column(numpy_dtype(dtype), shape, data)


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


def array_cast(dtype: Mapping[str, np.dtype[Any]] | np.dtype[Any], batch: Batch) -> Batch:
    """Casts the columns that a mapping names, or else all columns of floating-point numbers."""
    if isinstance(dtype, Mapping):
        return {name: array.astype(dtype.get(name, array.dtype), copy=False) for name, array in batch.items()}
    return {
        name: array.astype(dtype, copy=False) if _is_floating(array.dtype) else array for name, array in batch.items()
    }


def _is_floating(dtype: np.dtype[Any]) -> bool:
    # NumPy calls the kind of BF16 and of the floats of 8 bits "V".
    return dtype.kind in "fV"
