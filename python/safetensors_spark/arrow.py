"""Tensor Structs in Arrow and pandas as NumPy arrays, and back, with as few copies as possible.

    from safetensors_spark.arrow import stack, tensors, to_structs

    def normalize(batches):                                # for df.mapInArrow(normalize, df.schema)
        for batch in batches:
            x = stack(batch["x"])                          # a view of the whole batch: [rows, *shape]
            yield pa.record_batch([to_structs(x / 255)], ["x"])

    images = tensors(df.toArrow()["x"])                    # an array for each row

A column of Tensor Structs is `struct<data: binary, shape: array<int>, dtype: string>`. It can be

- an Arrow array or chunked array, from `mapInArrow`, `applyInArrow`, Arrow UDFs and `toArrow`. The arrays made from it
  are views of Arrow's memory (of one copy for a `binary_view`);
- a DataFrame with these three columns, from pandas UDFs. The arrays are views of its `bytes`;
- rows or dictionaries, from `toPandas` and `collect`. The arrays are views of their `bytes`, too.

The arrays are read-only, and keep their memory alive. BF16 and the 8-bit floats have types of `ml_dtypes`. Needs
`pip install "safetensors-spark[arrow]"`, also on executors that call it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from safetensors_spark import _extras
from safetensors_spark._errors import InvalidTensorError

try:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
except ImportError:
    _extras.require("arrow", ("pyarrow",))
    raise

from safetensors_spark._files.numpy_dtypes import Array, dtype_name, item_size, numpy_dtype

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

__all__ = ["Array", "TensorColumn", "stack", "tensors", "to_structs"]

TensorColumn: TypeAlias = "pa.Array | pa.ChunkedArray | pd.DataFrame | Iterable[Any]"
"""A column of Tensor Structs, in any of the forms in which Spark hands it over."""

_FIELDS = ("data", "shape", "dtype")
_INT32_MAX = 2**31 - 1


class _Cell(NamedTuple):
    """A Tensor Struct."""

    data: Array  # of bytes
    shape: list[int]
    dtype: str


def tensors(column: TensorColumn) -> list[Array | None]:
    """An array for each row; None if the tensor is null.

    Raises `InvalidTensorError`, which names the row, if the bytes do not match shape and dtype, and for F4 and F6,
    whose elements are smaller than a byte.
    """
    return [None if cell is None else _view(row, cell) for row, cell in enumerate(_cells(column))]


def stack(column: TensorColumn) -> Array:
    """All rows as one array of shape `[rows, *shape]`. All tensors must have one shape and dtype, and none be null.

    For an Arrow array it is a view. Data in several pieces is copied once: a chunked array with more than one chunk,
    and columns of pandas.

    Raises the errors of `tensors`, and `InvalidTensorError` for a row that is null or differs from the first, and for a
    column without rows, whose shape and dtype are unknown.
    """
    cells = [_not_null(row, cell) for row, cell in enumerate(_cells(column))]
    if not cells:
        raise InvalidTensorError("The column has no rows, which would tell the shape and dtype to stack them in.")
    first = cells[0]
    for row, cell in enumerate(cells):
        _check_same(row, cell, first)
        _check(row, cell)
    whole = [_whole(chunk) for chunk in _chunks(column)] or [cell.data for cell in cells]
    joined = whole[0] if len(whole) == 1 else np.concatenate(whole)
    return _read_only(joined.view(_numpy(0, first)).reshape(len(cells), *first.shape))


def to_structs(arrays: Array | Sequence[Array | None], dtype: str | None = None) -> pa.StructArray:
    """Arrays as a column of Tensor Structs, to return from `mapInArrow` and similar functions.

    Args:
        arrays: an array whose first dimension is the rows, which is not copied if it is contiguous; or an array for
            each row, of any shapes and dtypes, None for null. These are copied once.
        dtype: the dtype of the elements' bits, if it differs from NumPy's type: `BF16` for `uint16`, such as PyTorch's
            `x.view(torch.uint16).numpy()`. Nothing is converted.

    `data` is `binary`, and `large_binary` beyond 2 GiB. Raises `InvalidTensorError` for a type that safetensors does
    not have, and for a `dtype` with elements of another size.
    """
    if isinstance(arrays, np.ndarray):
        return _of_stack(arrays, dtype)
    cells = [None if array is None else _cell(np.asarray(array), dtype) for array in arrays]
    data = [None if cell is None else cell.data.data for cell in cells]
    size = sum(len(value) for value in data if value is not None)
    columns = [
        pa.array(data, pa.binary() if size <= _INT32_MAX else pa.large_binary()),
        pa.array([cell and cell.shape for cell in cells], pa.list_(pa.int32())),
        pa.array([cell and cell.dtype for cell in cells], pa.string()),
    ]
    return pa.StructArray.from_arrays(columns, _FIELDS, mask=pa.array([cell is None for cell in cells], pa.bool_()))


def _of_stack(array: Array, dtype: str | None) -> pa.StructArray:
    if array.ndim == 0:
        raise InvalidTensorError("Expected an array whose first dimension is the rows, but got one without dimensions.")
    cell, rows = _cell(array, dtype), len(array)
    shape = cell.shape[1:]
    wide = len(cell.data) > _INT32_MAX
    ends = np.arange(rows + 1, dtype=np.int64 if wide else np.int32) * (len(cell.data) // max(rows, 1))
    kind = pa.large_binary() if wide else pa.binary()
    dims = pa.array(np.tile(np.array(shape, np.int32), rows), pa.int32())
    columns = [
        pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(ends), pa.py_buffer(cell.data)]),
        pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * len(shape), dims),
        pa.repeat(pa.scalar(cell.dtype), rows),
    ]
    return pa.StructArray.from_arrays(columns, _FIELDS)


def _cell(array: Array, dtype: str | None) -> _Cell:
    """The array as a Tensor Struct, its bytes a view of it if it is contiguous and little-endian."""
    name = dtype or dtype_name(array.dtype)
    if item_size(name) != array.dtype.itemsize:
        raise InvalidTensorError(f"NumPy's {array.dtype.name} has elements of another size than {name}.")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return _Cell(np.ascontiguousarray(array).reshape(-1).view(np.uint8), list(array.shape), name)


def _cells(column: Any) -> Iterator[_Cell | None]:
    """The rows' Tensor Structs, None where one is null."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        for chunk in _chunks(column):
            yield from _cells_of_arrow(chunk)
    elif hasattr(column, "columns"):
        yield from map(_cell_of_python, *(column[name] for name in _FIELDS))
    else:
        for row in column:
            yield None if row is None else _cell_of_python(*(row[name] for name in _FIELDS))


def _cell_of_python(data: bytes | None, shape: Iterable[int] | None, dtype: str | None) -> _Cell | None:
    # A null struct comes to a pandas UDF as a row of nulls.
    if data is None or shape is None or dtype is None:
        return None
    return _Cell(np.frombuffer(data, np.uint8), [int(dim) for dim in shape], dtype)


def _chunks(column: TensorColumn) -> list[pa.StructArray]:
    """The pieces of an Arrow column that have rows; none of another."""
    if isinstance(column, pa.ChunkedArray):
        return [chunk for chunk in column.chunks if len(chunk)]
    return [column] if isinstance(column, pa.Array) and len(column) else []


def _cells_of_arrow(column: pa.StructArray) -> Iterator[_Cell | None]:
    data, shape, dtype = _fields(column)
    ends, values = _ends(data), _bytes(data)
    dims, shape_ends = np.asarray(shape.values), np.asarray(shape.offsets)
    null = np.asarray(column.is_null())
    for row, name in enumerate(dtype.to_pylist()):
        if null[row]:
            yield None
        else:
            dimensions = dims[shape_ends[row] : shape_ends[row + 1]].tolist()
            yield _Cell(values[ends[row] : ends[row + 1]], dimensions, name)


def _whole(column: pa.StructArray) -> Array:
    """The bytes of all rows, which Arrow keeps one after the other."""
    data, _, _ = _fields(column)
    ends = _ends(data)
    return _bytes(data)[ends[0] : ends[-1]]


def _fields(column: pa.Array) -> tuple[pa.Array, pa.ListArray, pa.Array]:
    """Bytes, shape and dtype, in types of which this module knows the memory."""
    names = [field.name for field in column.type] if pa.types.is_struct(column.type) else []
    if not set(_FIELDS) <= set(names):
        raise InvalidTensorError(f"Expected a column of Tensor Structs, but got {column.type}.")
    data, shape, dtype = (column.field(name) for name in _FIELDS)
    if not pa.types.is_binary(data.type):
        data = data.cast(pa.large_binary())
    return data, shape.cast(pa.list_(pa.int32())), dtype.cast(pa.string())


def _ends(data: pa.Array) -> Array:
    """Where each row's bytes begin, and the last one's end."""
    kind = np.int32 if pa.types.is_binary(data.type) else np.int64
    return np.frombuffer(data.buffers()[1], kind)[data.offset : data.offset + len(data) + 1]


def _bytes(data: pa.Array) -> Array:
    return np.frombuffer(data.buffers()[2] or b"", np.uint8)


def _view(row: int, cell: _Cell) -> Array:
    _check(row, cell)
    return _read_only(cell.data.view(_numpy(row, cell)).reshape(cell.shape))


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _numpy(row: int, cell: _Cell) -> np.dtype[Any]:
    try:
        return numpy_dtype(cell.dtype)
    except InvalidTensorError as error:
        raise InvalidTensorError(f"Row {row}: {error}") from None


def _check(row: int, cell: _Cell) -> None:
    size = _numpy(row, cell).itemsize
    if min(cell.shape, default=0) < 0 or len(cell.data) != math.prod(cell.shape) * size:
        raise InvalidTensorError(
            f"Row {row}: {len(cell.data)} bytes are no tensor {_kind(cell)}, "
            f"whose bytes would be the product of its dimensions times {size}."
        )


def _check_same(row: int, cell: _Cell, first: _Cell) -> None:
    if (cell.shape, cell.dtype) != (first.shape, first.dtype):
        raise InvalidTensorError(
            f"Row {row} is {_kind(cell)}, but row 0 is {_kind(first)}, and rows that are stacked are alike. "
            "`tensors` gives an array for each row."
        )


def _not_null(row: int, cell: _Cell | None) -> _Cell:
    if cell is None:
        raise InvalidTensorError(f"Row {row} is null, and cannot be stacked. `tensors` gives None for it.")
    return cell


def _kind(cell: _Cell) -> str:
    return f"{cell.dtype} of shape {cell.shape}"
