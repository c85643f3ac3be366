"""Rows of different lengths of mapped memory, copied one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._gather import LARGE, Rows
from safetensors_spark.dataset._memory import Memory

# Values of which NumPy copies each one by its number in the time in which Python says where a row begins.
_SHORT = 128


@dataclass(frozen=True)
class Spans:
    """Rows of several ragged columns.

    Attributes:
        which: the column that has each row.
        starts: the number of its first value there.
        lengths: how many values it has.
    """

    which: Array
    starts: Array
    lengths: Array

    @classmethod
    def of(cls, offsets: Sequence[Array], which: Array, rows: Array) -> Spans:
        """The rows of these numbers in columns that have these offsets."""
        starts, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(len(offsets) + 1)).tolist()
        for column, begin, end in zip(offsets, bounds[:-1], bounds[1:], strict=True):
            some = order[begin:end]
            starts[some], ends[some] = column[rows[some]], column[rows[some] + 1]
        return cls(which, starts, ends - starts)

    def take(self, begin: int, end: int) -> Spans:
        """The rows from `begin` to before `end`."""
        return Spans(self.which[begin:end], self.starts[begin:end], self.lengths[begin:end])

    @property
    def offsets(self) -> Array:
        """Where each row begins when all are copied one after the other, and the last one ends."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def total(self) -> int:
        """How many values all rows have."""
        return int(self.lengths.sum())

    def bytes_of(self, columns: Sequence[Array]) -> Iterator[bytes]:
        """The rows one by one, of these columns of bytes."""
        views = [column.reshape(-1).data for column in columns]
        places = zip(self.which.tolist(), self.starts.tolist(), (self.starts + self.lengths).tolist(), strict=True)
        return (views[column][start:end].tobytes() for column, start, end in places)

    def copy(self, columns: Sequence[Array], memory: Memory) -> None:
        """Fill the memory with the values, which are rows of bytes of these columns."""
        width = columns[0].shape[1]
        which, starts, lengths = self._runs()
        if not len(which) or not width:
            return
        if width < LARGE and int(lengths.sum()) < _SHORT * len(lengths):
            rows = Rows(columns, which, starts * width, width, lengths)
            memory.gather(rows, 0, len(rows))
        else:
            views = [column.reshape(-1).data for column in columns]
            runs = zip(which.tolist(), (starts * width).tolist(), ((starts + lengths) * width).tolist(), strict=True)
            memory.fill([views[column][start:end] for column, start, end in runs])

    def _runs(self) -> tuple[Array, Array, Array]:
        """The same values in fewer rows, none of them empty: those that follow each other are one."""
        some = np.flatnonzero(self.lengths)
        which, starts, lengths = self.which[some], self.starts[some], self.lengths[some]
        if len(some) < 2:
            return which, starts, lengths
        follows = (which[1:] == which[:-1]) & (starts[1:] == starts[:-1] + lengths[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~follows]))
        return which[first], starts[first], np.add.reduceat(lengths, first)
