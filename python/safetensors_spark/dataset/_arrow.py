"""Rows of different lengths as Arrow's arrays."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from safetensors_spark import _extras
from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.numpy_dtypes import Array

try:
    import pyarrow as pa  # type: ignore[import-untyped]
except ImportError:
    _extras.require("arrow", ("pyarrow",))
    raise


def lists(values: Array, offsets: Array) -> Any:
    """A `LargeListArray` of arrays. Raises `InvalidTensorError` for values that Arrow does not have."""
    try:
        found = pa.array(np.ascontiguousarray(values).reshape(-1))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, TypeError):
        raise InvalidTensorError(f"Arrow has no type for values of {values.dtype}.") from None
    for axis in range(values.ndim - 1, 0, -1):
        kind = pa.list_(found.type, values.shape[axis])
        found = pa.Array.from_buffers(kind, prod(values.shape[:axis]), [None], children=[found])
    return pa.LargeListArray.from_arrays(pa.array(offsets), found)


def strings(values: Array, offsets: Array) -> Any:
    """A `LargeStringArray`. Raises `ValueError` for what is not UTF-8."""
    found = _of_bytes(pa.large_string(), values, offsets)
    found.validate(full=True)
    return found


def binaries(values: Array, offsets: Array) -> Any:
    """A `LargeBinaryArray`."""
    return _of_bytes(pa.large_binary(), values, offsets)


def _of_bytes(kind: Any, values: Array, offsets: Array) -> Any:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
