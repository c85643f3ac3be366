"""Rows of different lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import prod
from typing import Any, NamedTuple, overload

import numpy as np

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.column_kinds import offsets_fault
from safetensors_spark._files.manifest import Kind
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._memory import Own
from safetensors_spark.dataset._origin import From, OfColumn, not_utf8, taken
from safetensors_spark.dataset._spans import Spans

# Rows that `repr` shows, and characters of each.
_SHOWN, _CHARACTERS = 3, 40
_INT32_MAX = 2**31 - 1
# To copy rows takes memory for each of them, which this limits.
_AT_ONCE = 16384


class Padded(NamedTuple):
    """Rows, each padded to the length of the longest one.

    Attributes:
        values: the values, of shape `[rows, length, *shape]`; zero after the end of a row.
        mask: booleans of shape `[rows, length]`: true for values of the row.
    """

    values: Any
    mask: Any


class Packed(NamedTuple):
    """Concatenated rows, as FlashAttention's functions for variable lengths expect them.

    Attributes:
        values: the values of all rows, of shape `[values, *shape]`.
        cu_seqlens: where each row begins, and the last one ends: 32-bit integers of shape `[rows + 1]`.
        max_seqlen: the length of the longest row.
    """

    values: Any
    cu_seqlens: Any
    max_seqlen: int


@dataclass(frozen=True, eq=False, repr=False)
class Ragged(Sequence[Any]):
    """Rows of different lengths, whose values are one array.

        rows[7], rows[-1]            # a row: a view of `values`, or a string, or bytes
        rows[2:5], rows[[3, 1]]      # rows; slices are views
        list(rows), rows.tolist()    # all rows; `tolist` as NumPy's, with lists of numbers

    Text is decoded on access.

    Attributes:
        values: the values of all rows, concatenated, of shape `[values, *shape]`; for text the UTF-8 bytes.
        offsets: where each row begins in `values`, and the last one ends: 64-bit integers, one more than rows.
        kind: the kind of rows: `ragged` for arrays, `text` for strings, `binary` for bytes.

    Raises `InvalidTensorError` for offsets that do not match the values.
    """

    values: Array
    offsets: Array
    kind: Kind = "ragged"
    # The `Origin` of text.
    _origin: Any = None

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or offsets.dtype != np.int64 or not len(offsets):
            raise InvalidTensorError(f"offsets are of {offsets.dtype} {list(offsets.shape)}, expected int64 [rows + 1]")
        if self.kind != "ragged" and (self.values.dtype, self.values.ndim) != (np.uint8, 1):
            raise InvalidTensorError(
                f"values of {self.kind} are of {self.values.dtype} {list(self.values.shape)}, expected uint8 [bytes]"
            )
        if fault := offsets_fault(offsets, len(offsets) - 1, len(self.values)):
            raise InvalidTensorError(f"the tensor of offsets {fault}")

    @property
    def lengths(self) -> Array:
        """The length of each row."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Array) -> Ragged: ...
    def __getitem__(self, index: int | slice | Sequence[int] | Array) -> Any:
        """A row; or rows by slice, numbers or mask. A slice without a step does not copy the values."""
        if isinstance(index, slice):
            return self._slice(range(len(self))[index])
        if isinstance(index, Sequence) or (isinstance(index, np.ndarray) and index.ndim):
            return self._take(np.arange(len(self))[np.asarray(index, None if len(index) else np.int64)])
        row = range(len(self))[index]
        return self._row(row, int(self.offsets[row]), int(self.offsets[row + 1]))

    def __iter__(self) -> Iterator[Any]:
        ends = self.offsets.tolist()
        if self.kind == "ragged":
            return (self.values[begin:end] for begin, end in pairwise(ends))
        return (self._row(row, begin, end) for row, (begin, end) in enumerate(pairwise(ends)))

    def __repr__(self) -> str:
        rows = [
            repr(row[:_CHARACTERS].tolist() if self.kind == "ragged" else row[:_CHARACTERS])
            for row in islice(self, _SHOWN)
        ]
        cut = [row if len(row) <= _CHARACTERS else f"{row[:_CHARACTERS]}..." for row in rows]
        more = ["..."] if len(self) > _SHOWN else []
        what = f"{self.values.dtype} {list(self.values.shape[1:])}" if self.kind == "ragged" else self.kind
        return f"<Ragged: {len(self):,} rows of {what}: {', '.join(cut + more)}>"

    def tolist(self) -> list[Any]:
        """The rows as lists of Python numbers, as strings, or as bytes."""
        if self.kind == "ragged":
            return [row.tolist() for row in self]
        whole, ends = self.values.tobytes(), self.offsets.tolist()
        rows = [whole[begin:end] for begin, end in pairwise(ends)]
        if self.kind == "binary":
            return rows
        try:
            return [row.decode() for row in rows]
        except UnicodeDecodeError:
            # Raises for the row that is wrong.
            return list(self)

    def copy(self) -> Ragged:
        """A copy of the rows, which the caller may change."""
        return replace(self, values=self.values.copy(), offsets=self.offsets.copy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.to_numpy()

    def to_numpy(self) -> Array:
        """An array of objects: arrays, strings or bytes. Arrays are views of `values`."""
        rows = np.empty(len(self), object)
        for number, row in enumerate(self):
            rows[number] = row
        return rows

    def to_padded(self) -> Padded:
        """One array, in which each row is padded with zeros, and a mask of the rows' values."""
        longest = int(self.lengths.max(initial=0))
        # Small numbers are compared several times as fast.
        lengths = self.lengths.astype(np.min_scalar_type(longest))
        mask = np.arange(longest, dtype=lengths.dtype) < lengths[:, None]
        dtype, shape = self.values.dtype, self.values.shape[1:]
        width = dtype.itemsize * prod(shape)
        memory, zeros = Own(mask.size, width), memoryview(bytes(mask.shape[1] * width))
        values, ends = as_bytes(self.values, width).reshape(-1).data, (self.offsets * width).tolist()
        memory.fill([piece for begin, end in pairwise(ends) for piece in (values[begin:end], zeros[end - begin :])])
        return Padded(memory.rows.view(dtype).reshape(*mask.shape, *shape), mask)

    def to_packed(self) -> Packed:
        """The values as they are, with 32-bit offsets. Raises `InvalidTensorError` for 2^31 values or more."""
        return Packed(self.values, packed_offsets(self.offsets), int(self.lengths.max(initial=0)))

    def to_arrow(self) -> Any:
        """Arrow's `LargeListArray`, `LargeStringArray` or `LargeBinaryArray`, with the same values.

        Booleans are copied, since they are bits in Arrow. Raises `InvalidTensorError` for values without an Arrow type.

        Needs the extra `arrow`.
        """
        from safetensors_spark.dataset import _arrow

        if self.kind != "text":
            convert = _arrow.lists if self.kind == "ragged" else _arrow.binaries
            return convert(self.values, self.offsets)
        try:
            return _arrow.strings(self.values, self.offsets)
        except ValueError:
            # Raises for the row that is wrong.
            self.tolist()
            raise

    def to_torch(self) -> Any:
        """PyTorch's nested tensor of layout `torch.jagged`, with the same values. Needs the extra `torch`.

        PyTorch does not support read-only arrays, and warns about them: `copy` rows to change them.
        """
        import torch

        if self.kind == "text":
            raise InvalidTensorError("PyTorch has no tensors of text: take `tolist()`.")
        flat = torch.from_numpy(np.ascontiguousarray(self.values).reshape(-1).view(np.uint8))
        values = flat.view(getattr(torch, self.values.dtype.name)).view(self.values.shape)
        return torch.nested.nested_tensor_from_jagged(values, torch.from_numpy(self.offsets))

    @classmethod
    def of_column(cls, values: Array, offsets: Array, kind: Kind, place: str) -> Ragged:
        """The rows of a shard's column, which errors call `place`."""
        return cls(values, offsets, kind, OfColumn(place) if kind == "text" else None)

    def _row(self, row: int, begin: int, end: int) -> Any:
        values = self.values[begin:end]
        if self.kind == "ragged":
            return values
        if self.kind == "binary":
            return values.tobytes()
        try:
            return values.tobytes().decode()
        except UnicodeDecodeError as error:
            raise not_utf8(self._origin, row, error) from None

    def _slice(self, rows: range) -> Ragged:
        if rows.step != 1:
            return self._take(np.arange(rows.start, rows.stop, rows.step))
        ends = self.offsets[rows.start : max(rows.start, rows.stop) + 1]
        origin = self._origin and From(self._origin, rows.start)
        return Ragged(self.values[ends[0] : ends[-1]], ends - ends[0], self.kind, origin)

    def _take(self, rows: Array) -> Ragged:
        return stack([self], np.zeros(len(rows), np.int64), rows)


def stack(parts: Sequence[Ragged], which: Array, rows: Array) -> Ragged:
    """Rows of several, as one with values of its own: `which` part each one is in, and its number there."""
    first = parts[0]
    spans = Spans.of([part.offsets for part in parts], which, rows)
    dtype, shape = first.values.dtype, (spans.total, *first.values.shape[1:])
    width = dtype.itemsize * prod(shape[1:])
    memory = Own(spans.total, width)
    columns, offsets = [as_bytes(part.values, width) for part in parts], spans.offsets
    for begin in range(0, len(rows), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(rows))
        spans.take(begin, end).copy(columns, memory.part(offsets[begin], offsets[end]))
    origin = taken([part._origin for part in parts], which, rows)
    return Ragged(memory.rows.view(dtype).reshape(shape), offsets, first.kind, origin)


def as_bytes(values: Array, width: int) -> Array:
    """Each value as a row of so many bytes."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(len(values), width)


def packed_offsets(offsets: Array) -> Array:
    """The offsets as 32-bit integers. Raises `InvalidTensorError` where they do not fit."""
    if offsets[-1] > _INT32_MAX:
        raise InvalidTensorError(
            f"{offsets[-1]:,} values do not fit offsets of 32 bits, which count to {_INT32_MAX:,}: take fewer rows at "
            "once."
        )
    return offsets.astype(np.int32)
