"""Rows of one column in key-value mode, where each is a tensor of its own shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.header_writer import METADATA
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._write.arrow_values import whole
from safetensors_spark.dataset._write.chunk import Chunk, chunk_of
from safetensors_spark.dataset._write.tensor_structs import chunks_of_structs, is_tensor_struct


class KeyedRows:
    """Tensors, one of each row.

    Attributes:
        columns: what each row is; one for all of them if they are alike.
        sizes: bytes of each.
    """

    def __init__(self, chunks: list[Chunk]) -> None:
        """One chunk with all rows, or one for each row."""
        self._chunks = chunks
        self.is_alike = len(chunks) == 1
        self.columns = [chunk.column for chunk in chunks]
        if self.is_alike:
            rows = chunks[0].values
            self.sizes = np.full(len(rows), rows.nbytes // max(len(rows), 1), np.int64)
        else:
            self.sizes = np.array([chunk.values.nbytes for chunk in chunks], np.int64)

    def __len__(self) -> int:
        return len(self.sizes)

    def column(self, row: int) -> Column:
        return self.columns[0 if self.is_alike else row]

    def table(self, start: int, end: int) -> Array:
        """The bytes of alike rows, a row in each line, without a copy."""
        rows = self._chunks[0].values[start:end]
        if not rows.size:
            return np.empty((len(rows), 0), np.uint8)
        found: Array = rows.reshape(len(rows), -1).view(np.uint8)
        return found

    def copy(self) -> KeyedRows:
        """The same rows in memory of their own."""
        return KeyedRows([chunk.copy() for chunk in self._chunks])

    def take(self, rows: Sequence[int]) -> KeyedRows:
        """Those rows."""
        if self.is_alike:
            return KeyedRows([replace(self._chunks[0], values=self._chunks[0].values[list(rows)])])
        return KeyedRows([self._chunks[row] for row in rows])

    def chunks(self) -> list[Chunk]:
        """A chunk of each row."""
        return [self._chunks[0].rows(row, row + 1) for row in range(len(self))] if self.is_alike else self._chunks

    def bytes_of(self, row: int) -> Array:
        values = self._chunks[0].values[row : row + 1] if self.is_alike else self._chunks[row].values
        return values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)


def joined(parts: Sequence[KeyedRows]) -> KeyedRows:
    """All rows of a column, one part after the other."""
    first = parts[0]
    if all(part.is_alike and part.columns == first.columns for part in parts):
        values = np.concatenate([chunk.values for part in parts for chunk in part._chunks])
        return KeyedRows([replace(first._chunks[0], values=values)])
    return KeyedRows([chunk for part in parts for chunk in part.chunks()])


def keyed_rows(name: str, values: Any, convert: Any, store: Callable[[Chunk, Column | None], Chunk]) -> KeyedRows:
    """The rows of a column, which may differ in dtype and shape.

    Args:
        store: makes of rows what is stored; the column is that of other rows, which tells the dtype of empty lists.

    Raises `InvalidWriteError` for what only batches store.
    """
    chunks = [of_tensors(chunk) for chunk in _chunks(name, values, convert)]
    typed = next((chunk.column for chunk in chunks if chunk.is_typed), None)
    return KeyedRows([store(chunk, typed) for chunk in chunks])


def _chunks(name: str, values: Any, convert: Any) -> list[Chunk]:
    try:
        return [convert(name, values, False)]
    except InvalidWriteError:
        if _is_of_arrow(values) and is_tensor_struct(values.type):
            return chunks_of_structs(name, whole(name, values))
        if _is_of_arrow(values):
            return _lists(convert(name, values, True))
        rows = _rows_of(values)
        if rows is None:
            raise
        return [convert(name, [row], False) for row in rows]


def _rows_of(values: Any) -> list[Any] | None:
    """Rows that differ from each other; None for what has no such rows."""
    rows = list(values) if not isinstance(values, np.ndarray) or values.dtype.kind == "O" else None
    return rows if rows and not any(row is None or isinstance(row, str | bytes) for row in rows) else None


def _is_of_arrow(values: Any) -> bool:
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _lists(ragged: Chunk) -> list[Chunk]:
    """Lists of different lengths, each as a row of its own shape."""
    if ragged.offsets is None or ragged.column.kind != "ragged":
        return [ragged]
    ends = ragged.offsets.tolist()
    rows = (ragged.values[start:end] for start, end in pairwise(ends))
    return [chunk_of(ragged.column.name, "fixed", row[np.newaxis]) for row in rows]


def of_tensors(chunk: Chunk) -> Chunk:
    """The same rows, if each is a tensor. Raises `InvalidWriteError` for what only batches store."""
    if chunk.column.kind != "fixed":
        raise InvalidWriteError(
            f"Column `{chunk.column.name}` is {chunk.column.kind}, which only batches store, with `batch_size`. Leave "
            "it out, or write a batch."
        )
    return chunk


def keys_of(name: str, values: Any, in_buckets: bool = False) -> list[str]:
    """The keys of rows: text, or whole numbers as text. Raises `InvalidWriteError` for anything else.

    Args:
        in_buckets: whether keys are put in buckets, which are those of text.
    """
    if hasattr(values, "to_pylist"):
        keys = values.to_pylist()
    else:
        keys = values.tolist() if hasattr(values, "tolist") else list(values)
    if in_buckets and any(isinstance(key, int) for key in keys):
        raise InvalidWriteError(f"Column `{name}`: keys in buckets are text, not numbers. Make it text.")
    return [_key(name, row, key) for row, key in enumerate(keys)]


def _key(name: str, row: int, key: Any) -> str:
    if key is None:
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: null, and every tensor needs a key. Fill it, or leave the row out."
        )
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: {key!r:.80} is not a key: expected text or a whole number."
        )
    text = str(key)
    if text == METADATA:
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: `{key}`, a name that the format keeps for itself: no reader would find the "
            "tensor. Name it otherwise."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: {key!r:.80}, a key that UTF-8 cannot store. Encode it otherwise."
        ) from None
    return text
