"""Stacks rows: each column becomes one tensor of a shard, or two if its rows have different lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.header_writer import sorted_json
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._write.chunk import Chunk
from safetensors_spark.dataset._write.shards import Payload, Shards, rows_that_fit

Tail = Literal["write", "drop", "pad"]

# The entry of a shard's metadata that names the kinds of its columns.
COLUMN_KINDS = "column_kinds"


@dataclass
class BatchShards:
    """Rows to shards. Rows that fill no shard wait for more; all others are not copied.

    Attributes:
        batch_size: rows of a shard; None for as many as fill `shard_bytes`.
    """

    shards: Shards
    batch_size: int | None
    shard_bytes: int
    tail: Tail

    def __post_init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._waiting: list[list[Chunk]] = []
        self._rows, self._bytes, self._last = 0, 0, 0

    def write(self, chunks: Sequence[Chunk]) -> None:
        """Write rows: for each column, in the same order each time, those of one batch."""
        rows, start = len(chunks[0]), 0
        while start < rows:
            count = self._count(chunks, start)
            if count:
                self._waiting.append([chunk.rows(start, start + count) for chunk in chunks])
                self._rows += count
                start += count
            if start < rows or self._rows == self.batch_size:
                self._close(self._rows)
        # The caller may change its arrays once this returns. What waited before has been copied already.
        if self._waiting:
            self._waiting[-1] = [chunk.copy() for chunk in self._waiting[-1]]

    def _count(self, chunks: Sequence[Chunk], start: int) -> int:
        """How many of the rows from `start` on go into the open shard."""
        if self.batch_size is not None:
            return min(self.batch_size - self._rows, len(chunks[0]) - start)
        sizes = np.sum([chunk.sizes() for chunk in chunks], axis=0)[start:]
        if not self._rows:
            # The first of the offsets.
            sizes[0] += 8 * sum(chunk.offsets is not None for chunk in chunks)
        count = rows_that_fit(sizes, self._bytes, self._last, self.shard_bytes)
        if count:
            self._bytes += int(sizes[:count].sum())
            self._last = int(sizes[count - 1])
        return count

    def finish(self) -> None:
        """Apply the tail strategy to the rows that wait."""
        if self._rows and self.tail == "write":
            self._close(self._rows)
        elif self._rows and self.tail == "pad":
            self._close(self.batch_size or self._rows)
        self._reset()

    def _close(self, leading: int) -> None:
        columns = [list(parts) for parts in zip(*self._waiting, strict=True)]
        tensors = [tensor for parts in columns for tensor in _tensors(parts, leading - self._rows)]
        kinds = {parts[0].column.name: parts[0].column.kind for parts in columns}
        self.shards.write_tensors(tensors, self._rows, _metadata(self.shards.metadata, kinds))
        self._reset()


def _metadata(given: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a shard, which names the kinds of its columns, so that it can be understood without the
    manifest.
    """
    others = {name: kind for name, kind in kinds.items() if kind != "fixed"}
    return {**given, **({COLUMN_KINDS: sorted_json(others)} if others else {})}


def _tensors(parts: Sequence[Chunk], padding: int) -> list[Payload]:
    """The tensors of a column, extended by so many rows: zeros, or empty ones."""
    # Empty rows do not tell the shape of a value.
    column = next((part.column for part in parts if part.column.shape is not None), parts[0].column)
    dtype, shape = str(column.dtype), column.shape or ()
    values = [part.values for part in parts]
    if parts[0].offsets is None:
        if padding:
            values.append(np.zeros((padding, *values[0].shape[1:]), values[0].dtype))
        return [Payload(column.name, dtype, (sum(map(len, values)), *shape), values)]
    offsets = _offsets(parts, padding)
    return [
        Payload(column.name, dtype, (sum(map(len, values)), *shape), values),
        Payload(column.tensors[1], "I64", offsets.shape, [offsets]),
    ]


def _offsets(parts: Sequence[Chunk], padding: int) -> Array:
    found, end = [np.zeros(1, np.int64)], 0
    for part in parts:
        if part.offsets is not None:
            found.append(part.offsets[1:] + end)
            end += int(part.offsets[-1])
    return np.concatenate([*found, np.full(padding, end, np.int64)]).astype("<i8", copy=False)


def check_tensors(columns: Sequence[Column], metadata: Mapping[str, str]) -> None:
    """Raise `InvalidWriteError` if a column has the name of another one's offsets."""
    for column in columns:
        for other in columns:
            if column.has_offsets and other.name.lower() == column.tensors[1].lower():
                raise InvalidWriteError(
                    f"Column `{other.name}` has the name of the tensor in which the offsets of column `{column.name}` "
                    f"are stored, as that is {column.kind}. Rename one."
                )
    if COLUMN_KINDS in metadata:
        raise InvalidWriteError(
            f"`metadata` has `{COLUMN_KINDS}`, in which a shard names the kinds of its columns. Name it otherwise."
        )
