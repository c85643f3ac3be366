"""Tensor Structs of Arrow: `{data, shape, dtype}`, as Spark's `arr_to_st` makes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.manifest import Column, Kind
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._write.chunk import LET_DIFFER, TENSOR_STRUCT, Chunk, shown

_FIELDS = ("data", "shape", "dtype")


def is_tensor_struct(kind: Any) -> bool:
    """Whether a type of Arrow is that of Tensor Structs."""
    import pyarrow as pa  # type: ignore[import-untyped]

    if not pa.types.is_struct(kind) or sorted(field.name for field in kind) != sorted(_FIELDS):
        return False
    data, shape, dtype = (kind.field(name).type for name in _FIELDS)
    return bool(
        (pa.types.is_binary(data) or pa.types.is_large_binary(data))
        and (pa.types.is_list(shape) or pa.types.is_large_list(shape))
        and pa.types.is_integer(shape.value_type)
        and (pa.types.is_string(dtype) or pa.types.is_large_string(dtype))
    )


@dataclass(frozen=True)
class _Rows:
    """Tensors, one of each row, whose bytes are as many as dtype and shape say."""

    name: str
    dtypes: list[str]
    shapes: list[tuple[int, ...]]
    data: Array
    offsets: Array

    def chunk(self, kind: Kind, rows: slice) -> Chunk:
        """Rows of one dtype and shape; ragged ones of one shape of values."""
        dtype, shapes = self.dtypes[rows][0], self.shapes[rows]
        data = self.data[self.offsets[rows.start] : self.offsets[rows.stop]]
        if kind == "fixed":
            column = Column(self.name, dtype, shapes[0], "fixed", TENSOR_STRUCT)
            return Chunk(column, data.reshape(len(shapes), len(data) // len(shapes)), is_struct=True)
        shape = next((shape for shape in shapes if shape[0]), shapes[0])[1:]
        offsets = np.zeros(len(shapes) + 1, np.int64)
        np.cumsum([one[0] for one in shapes], out=offsets[1:])
        bits = math.prod(shape) * DTYPES[dtype]
        if bits % 8:
            raise InvalidWriteError(
                f"Column `{self.name}`: values of {dtype} {shown(shape)} fill no whole bytes, so that no row could be "
                "read by itself. Leave the column out of `ragged`."
            )
        column = Column(self.name, dtype, shape, "ragged", TENSOR_STRUCT)
        return Chunk(column, data.reshape(int(offsets[-1]), bits // 8), offsets, is_struct=True)


def chunk_of_structs(name: str, array: Any, is_ragged: bool) -> Chunk:
    """The rows of a column of Tensor Structs, which must be alike."""
    if not len(array):
        offsets = np.zeros(1, np.int64) if is_ragged else None
        column = Column(name, None, None, "ragged" if is_ragged else "fixed", TENSOR_STRUCT)
        return Chunk(column, np.empty((0, 0), np.uint8), offsets, is_struct=True)
    rows = _rows(name, array)
    _check_alike(rows, is_ragged)
    return rows.chunk("ragged" if is_ragged else "fixed", slice(0, len(array)))


def chunks_of_structs(name: str, array: Any) -> list[Chunk]:
    """A chunk of each row of a column of Tensor Structs, which may differ."""
    rows = _rows(name, array)
    return [rows.chunk("fixed", slice(row, row + 1)) for row in range(len(array))]


def _rows(name: str, array: Any) -> _Rows:
    import pyarrow as pa

    fields = dict(zip(_FIELDS, (array.field(one) for one in _FIELDS), strict=True))
    for one, values in fields.items():
        if values.null_count:
            raise InvalidWriteError(f"Column `{name}`, row {values.is_null().index(True).as_py()}: `{one}` is null.")
    dtypes = fields["dtype"].to_pylist()
    shapes = [tuple(shape) for shape in fields["shape"].to_pylist()]
    data = fields["data"].cast(pa.large_binary())
    _, starts, values = data.buffers()
    offsets = np.frombuffer(starts, np.int64, len(data) + 1, data.offset * 8)
    for row, (dtype, shape, size) in enumerate(zip(dtypes, shapes, np.diff(offsets).tolist(), strict=True)):
        if wrong := _fault(dtype, shape, size):
            raise InvalidWriteError(f"Column `{name}`, row {row}: {wrong}.")
    held = np.empty(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    return _Rows(name, dtypes, shapes, held, offsets)


def _fault(dtype: str, shape: Sequence[Any], size: int) -> str | None:
    """What is wrong with a tensor of so many bytes."""
    if dtype not in DTYPES:
        return f"the unknown dtype `{dtype}`, expected one of {', '.join(DTYPES)}"
    if None in shape:
        return "a dimension in `shape` is null"
    dims = tuple(shape)
    if any(dim < 0 for dim in dims):
        return f"the negative dimension in shape {shown(dims)}"
    bits = math.prod(dims) * DTYPES[dtype]
    if bits % 8:
        return f"shape {shown(dims)} of {dtype}, which fills no whole bytes"
    if bits // 8 != size:
        return f"{size} bytes of data, but shape {shown(dims)} of {dtype} takes {bits // 8}"
    return None


def _check_alike(rows: _Rows, is_ragged: bool) -> None:
    like = next((shape for shape in rows.shapes if 0 not in shape[:1]), rows.shapes[0])
    for row, (dtype, shape) in enumerate(zip(rows.dtypes, rows.shapes, strict=True)):
        if is_ragged and not shape:
            raise InvalidWriteError(
                f"Column `{rows.name}`, row {row}: {dtype} [], and the rows of a ragged column have a first dimension. "
                "Leave the column out of `ragged`."
            )
        # A row without values does not tell their shape.
        alike = shape == like or (is_ragged and (shape[0] == 0 or shape[1:] == like[1:]))
        if dtype == rows.dtypes[0] and alike:
            continue
        remedy = (
            "Rows of a ragged column differ in their first dimension alone. Make them alike."
            if is_ragged
            else f"Make the rows alike, write with `name_col`, or {LET_DIFFER}."
        )
        raise InvalidWriteError(
            f"Column `{rows.name}`, row {row}: {dtype} {shown(shape)}, but other rows have {rows.dtypes[0]} "
            f"{shown(like)}. {remedy}"
        )
