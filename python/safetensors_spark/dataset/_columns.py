"""Samples of mapped shards, copied once, into memory that their consumer owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

import numpy as np

from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._gather import LARGE, Rows
from safetensors_spark.dataset._memory import Memory
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import OpenShard, View, unlike

# Seconds after which shards are checked again, which takes a microsecond or two for each.
_PAUSE = 0.01

# A dtype of a library, and its arrays.
D = TypeVar("D")
T = TypeVar("T")


@dataclass(frozen=True)
class MappedColumn(Generic[D]):
    """A tensor of a mapped shard: a row of bytes for each sample."""

    rows: Array
    dtype: D
    shape: tuple[int, ...]


# Makes an array for so many samples of a column, and says in which memory it is.
New = Callable[[int, MappedColumn[D]], tuple[T, Memory]]


def mapped_column(dtype: D, shape: tuple[int, ...], data: Array) -> MappedColumn[D]:
    """The bytes of a tensor of this shape, whose first dimension counts samples."""
    rows = data.reshape(shape[0], -1) if len(data) else np.empty((shape[0], 0), np.uint8)
    return MappedColumn(rows, dtype, shape[1:])


class Columns(Generic[D, T]):
    """The columns of a dataset. May be used from many threads, and sent to other processes."""

    def __init__(self, samples: Samples, view: View[MappedColumn[D]], new: New[D, T]) -> None:
        self.samples = samples
        self._open = samples.open(view)
        self._new = new

    def choose(self, numbers: Array) -> Chosen[D, T]:
        """The samples of these numbers, one or more."""
        which, rows = self.samples.locate(numbers)
        first = int(which.min())
        which -= first
        used = np.bincount(which) > 0
        files = [self.samples.shards[first + number] for number in np.flatnonzero(used)]
        shards = [self._open.open(file) for file in files]
        columns = {name: _same(name, files, [one.columns[name] for one in shards]) for name in self.samples.columns}
        return Chosen(columns, _Checks(shards), self._new, (np.cumsum(used) - 1)[which], rows)

    def prefetch(self, shards: Sequence[Shard]) -> None:
        """Says which shards will be needed next, and no others."""
        self._open.release(shards)
        self._open.prefetch(shards)


def _same(name: str, shards: Sequence[Shard], columns: Sequence[MappedColumn[D]]) -> Sequence[MappedColumn[D]]:
    first = columns[0]
    for shard, column in zip(shards, columns, strict=True):
        if (column.dtype, column.shape) != (first.dtype, first.shape):
            raise unlike(name, (shards[0], first.dtype, first.shape), (shard, column.dtype, column.shape))
    return columns


class _Checks:
    """Checks shards, which were checked when this was made, again and again. May be used from many threads."""

    def __init__(self, shards: Sequence[OpenShard[Any]]) -> None:
        self._shards, self._due = shards, monotonic() + _PAUSE

    def __call__(self) -> None:
        if monotonic() >= self._due:
            for shard in self._shards:
                shard.check()
            self._due = monotonic() + _PAUSE


class Chosen(Generic[D, T]):
    """Samples that were chosen, to be taken piece by piece: what all pieces need is done once.

    It keeps the maps of their shards, whose bytes are copied by address.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[MappedColumn[D]]],
        check: Callable[[], None],
        new: New[D, T],
        which: Array,
        rows: Array,
    ) -> None:
        """`columns` are those of some shards, `which` of them has each sample, and `rows` are its numbers there.

        `check` raises for shards whose bytes cannot be copied any more.
        """
        self._columns, self._check = columns, check
        self._new = new
        self._which, self._rows = which, rows
        # Rows that follow each other have one number.
        self._runs = np.cumsum((np.diff(rows, prepend=-2) != 1) | (np.diff(which, prepend=-1) != 0))
        self._small: dict[str, Rows] = {}

    def take(self, begin: int, end: int) -> dict[str, T]:
        """A piece of them, stacked."""
        return self.piece(begin, end)()

    def piece(self, begin: int, end: int) -> Callable[[], dict[str, T]]:
        """What copies a piece of them, in any thread.

        Memory for it is taken here: what threads take for themselves, C's library gives back and fetches anew for each.
        """
        runs = int(self._runs[end - 1] - self._runs[begin]) + 1
        batch, copies = {}, []
        for name, (column, *_) in self._columns.items():
            count, width = end - begin, column.rows.shape[1]
            batch[name], memory = self._new(count, column)
            if runs == 1 or count * width >= runs * LARGE:
                copies.append(partial(memory.fill, self._runs_of(name, begin, end)))
            elif width:
                copies.append(partial(memory.gather, self._rows_of(name), begin, end))
        return partial(_filled, batch, self._check, copies)

    def _runs_of(self, name: str, begin: int, end: int) -> list[Array]:
        """Rows that follow each other are copied at once."""
        starts = np.append(begin, begin + 1 + np.flatnonzero(np.diff(self._runs[begin:end])))
        counts = np.diff(starts, append=end)
        runs = zip(self._which[starts].tolist(), self._rows[starts].tolist(), counts.tolist(), strict=True)
        return [self._columns[name][shard].rows[row : row + count] for shard, row, count in runs]

    def _rows_of(self, name: str) -> Rows:
        """The column's bytes of all samples, which are few for each."""
        found = self._small.get(name)
        if found is None:
            shards = [shard.rows for shard in self._columns[name]]
            width = shards[0].shape[1]
            found = self._small[name] = Rows(shards, self._which, self._rows * width, width)
        return found


def _filled(batch: dict[str, T], check: Callable[[], None], copies: Sequence[Callable[[], None]]) -> dict[str, T]:
    check()
    for copy in copies:
        copy()
    return batch
