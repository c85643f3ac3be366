"""Rows of one column, as they are stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Column, Kind
from safetensors_spark._files.numpy_dtypes import Array, dtype_name

# The Spark types whose arrays hold what these dtypes hold.
_SPARK_TYPES = {
    "BOOL": "boolean", "I8": "tinyint", "I16": "smallint", "I32": "int", "I64": "bigint", "F32": "float",
    "F64": "double",
    "U8": "smallint", "U16": "int", "U32": "bigint", "F16": "float", "BF16": "float",
    "F8_E4M3": "float", "F8_E5M2": "float",
}  # fmt: skip
TENSOR_STRUCT = "struct<data:binary,shape:array<int>,dtype:string>"
_OF_KIND = {kind: kind for kind in ("text", "binary", "date", "timestamp", "timestamp_ntz")} | {"text": "string"}

# What errors advise where rows differ in their first dimension.
LET_DIFFER = (
    "name the column in `ragged`, which lets the first dimension of rows differ; a dataset whose rows are alike must "
    "be overwritten for that"
)


@dataclass(frozen=True)
class Chunk:
    """Some rows of a column.

    Attributes:
        values: of shape `[rows, *shape]`; with offsets of `[values, *shape]`.
        offsets: where each row begins in the values, and the last one ends; None for rows of one shape.
        is_struct: whether the rows were Tensor Structs: of each value there are bytes, also of dtypes that NumPy lacks.
    """

    column: Column
    values: Array
    offsets: Array | None = None
    is_struct: bool = False

    @property
    def is_typed(self) -> bool:
        """Whether the rows tell their dtype. Empty lists do not."""
        return self.column.type is not None

    @property
    def has_spark_type(self) -> bool:
        """Whether a type of Spark has the values."""
        return self.column.type != TENSOR_STRUCT

    def row_of(self, index: int) -> int:
        """The row of an element, by its place in the flattened values."""
        value = index // max(math.prod(self.values.shape[1:]), 1)
        return value if self.offsets is None else int(np.searchsorted(self.offsets, value, "right")) - 1

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def rows(self, start: int, end: int) -> Chunk:
        """Those rows, without a copy."""
        if self.offsets is None:
            return replace(self, values=self.values[start:end])
        offsets = self.offsets[start : end + 1]
        return replace(self, values=self.values[offsets[0] : offsets[-1]], offsets=offsets - offsets[0])

    def copy(self) -> Chunk:
        """The same rows in memory of their own."""
        return replace(self, values=self.values.copy())

    def sizes(self) -> Array:
        """The bytes of each row, with its offset."""
        of_value = self.values.dtype.itemsize * math.prod(self.values.shape[1:])
        if self.offsets is None:
            return np.full(len(self), of_value, np.int64)
        sizes: Array = np.diff(self.offsets) * of_value + 8
        return sizes


def chunk_of(name: str, kind: Kind, values: Array, offsets: Array | None = None) -> Chunk:
    """Rows of these values, contiguous and little-endian, with the column that they make."""
    stored = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(values.shape)
    column = column_of(name, dtype_name(stored.dtype), stored.shape[1:], kind)
    return Chunk(column, stored, None if offsets is None else np.ascontiguousarray(offsets, np.int64))


def untyped(name: str, rows: int, shape: tuple[int, ...] | None, is_ragged: bool) -> Chunk:
    """Rows that are empty lists, whose dtype is not known; of ragged ones not always the shape of a value."""
    column = Column(name, None, shape, "ragged" if is_ragged else "fixed")
    offsets = np.zeros(rows + 1, np.int64) if is_ragged else None
    return Chunk(column, np.empty((0 if is_ragged else rows, *(shape or ()))), offsets)


def check_text(chunk: Chunk) -> Chunk:
    """Raise `InvalidWriteError` for bytes that are not UTF-8, and for offsets that split a character."""
    if chunk.column.kind != "text" or chunk.offsets is None:
        return chunk
    starts = chunk.offsets[:-1][chunk.offsets[:-1] < len(chunk.values)]
    try:
        chunk.values.tobytes().decode()
        at = int(starts[(chunk.values[starts] & 0xC0) == 0x80][0]) if len(starts) else -1
    except IndexError:
        return chunk
    except UnicodeDecodeError as error:
        at = error.start
    if at < 0:
        return chunk
    row = int(np.searchsorted(chunk.offsets, at, "right")) - 1
    raise InvalidWriteError(
        f"Column `{chunk.column.name}`, row {row}: a text whose bytes are not valid UTF-8. Repair it, or write bytes."
    )


def column_of(name: str, dtype: str, shape: tuple[int, ...], kind: Kind) -> Column:
    """The column, with the Spark type of the equal array."""
    of_value = _SPARK_TYPES.get(dtype)
    depth = len(shape) + (kind in ("ragged", "text", "binary"))
    of_rows = TENSOR_STRUCT if of_value is None else "array<" * depth + of_value + ">" * depth
    return Column(name, dtype, shape, kind, _OF_KIND.get(kind, of_rows))


def shown(shape: tuple[int, ...]) -> str:
    """A shape, for errors."""
    return f"[{', '.join(map(str, shape))}]"
