"""Samples of mapped shards, copied once, into memory that their consumer owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from time import monotonic
from typing import Any, Generic, TypeVar

import numpy as np

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._gather import LARGE, Rows
from safetensors_spark.dataset._memory import Memory, Own
from safetensors_spark.dataset._origin import OfColumn, Taken
from safetensors_spark.dataset._ragged import Ragged
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import OpenShard, ShardColumn, View, unlike
from safetensors_spark.dataset._spans import Spans

# Seconds after which shards are checked again, which takes a microsecond or two for each.
_PAUSE = 0.01
# Bytes of a row that are copied on their own faster than with others, and once more to be a row again.
_LONG = 1024

# A dtype of a library, and its arrays.
D = TypeVar("D")
T = TypeVar("T")


@dataclass(frozen=True)
class MappedColumn(Generic[D]):
    """A column of a mapped shard.

    Attributes:
        rows: a row of bytes for each sample; for each value, if there are offsets.
        shape: of a sample, or of a value.
        source: the column that it was made of.
    """

    rows: Array
    dtype: D
    shape: tuple[int, ...]
    source: ShardColumn


@dataclass(frozen=True)
class Gathered(Generic[T]):
    """Samples of different lengths: the values of all, and where each sample begins and the last one ends."""

    values: T
    offsets: Array

    def __getitem__(self, row: int) -> T:
        """The values of a sample."""
        return self.values[self.offsets[row] : self.offsets[row + 1]]  # type: ignore[index,no-any-return]


# Makes an array for so many samples, or values, of a column, and says in which memory it is.
New = Callable[[int, MappedColumn[D]], tuple[T, Memory]]


def mapped_column(dtype: D, shape: tuple[int, ...], source: ShardColumn) -> MappedColumn[D]:
    """The column as a reader's dtype and shape, whose first dimension is that of the source."""
    width = DTYPES[source.dtype] * prod(source.shape[1:]) // 8
    return MappedColumn(source.data.reshape(source.shape[0], width), dtype, shape[1:], source)


@dataclass(frozen=True)
class Opened(Generic[D]):
    """Shards that are mapped.

    Attributes:
        columns: those of each shard.
        check: raises for shards whose bytes cannot be copied any more.
        which: the place of a shard among these, of each number that was asked for.
    """

    columns: Mapping[str, Sequence[MappedColumn[D]]]
    check: Callable[[], None]
    which: Array


class Columns(Generic[D, T]):
    """The columns of a dataset. May be used from many threads, and sent to other processes."""

    def __init__(self, samples: Samples, view: View[MappedColumn[D]], new: New[D, T]) -> None:
        self.samples = samples
        self._open = samples.open(view)
        self.new = new

    def choose(self, numbers: Array) -> Chosen[D, T]:
        """The samples of these numbers, one or more."""
        which, rows = self.samples.locate(numbers)
        return Chosen(self.opened(which), self.new, rows)

    def opened(self, which: Array) -> Opened[D]:
        """The shards of these numbers, one or more of them, which may come several times."""
        first = int(which.min())
        used = np.bincount(which - first) > 0
        files = [self.samples.shards[first + number] for number in np.flatnonzero(used)]
        shards = [self._open.open(file) for file in files]
        columns = {name: _same(name, files, [one.columns[name] for one in shards]) for name in self.samples.columns}
        return Opened(columns, _Checks(shards), (np.cumsum(used) - 1)[which - first])

    def offsets(self, shard: int) -> Array:
        """Where the samples of the shard of this number begin: the same in all columns, which are all ragged.

        Raises `InvalidTensorError` where they differ.
        """
        file = self.samples.shards[shard]
        (first, offsets), *others = ((name, column.source.offsets) for name, column in self._open.columns(file).items())
        for name, other in others:
            if offsets is None or other is None or not np.array_equal(offsets, other):
                raise InvalidTensorError(
                    f"{self.samples.location}: in {file.file} the samples of the columns `{first:.200}` and "
                    f"`{name:.200}` differ in length: read one of them, `open_dataset(..., columns=[{first!r:.200}])`."
                )
        assert offsets is not None
        return offsets

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

    def __init__(self, opened: Opened[D], new: New[D, T], rows: Array) -> None:
        """`rows` are the samples' numbers in their shards."""
        self._columns, self._check, self._which = opened.columns, opened.check, opened.which
        self._new, self._rows = new, rows
        # Rows that follow each other have one number.
        self._runs = np.cumsum((np.diff(rows, prepend=-2) != 1) | (np.diff(self._which, prepend=-1) != 0))
        self._small: dict[str, Rows] = {}
        self._spans: dict[str, Spans] = {}

    def take(self, begin: int, end: int) -> dict[str, Any]:
        """A piece of them, as `piece` makes it."""
        return self.piece(begin, end)()

    def piece(self, begin: int, end: int) -> Callable[[], dict[str, Any]]:
        """What copies a piece of them, in any thread: to arrays of stacked samples, of ragged columns to `Gathered`, of
        text and bytes to `Ragged`, or of long bytes to a list of them.

        Memory for it is taken here: what threads take for themselves, C's library gives back and takes again for each.
        """
        batch: dict[str, Any] = {}
        copies = []
        for name, (column, *_) in self._columns.items():
            make = self._fixed if column.source.offsets is None else self._ragged
            batch[name], copy = make(name, begin, end)
            copies.append(copy)
        return partial(filled, batch, self._check, copies)

    def _fixed(self, name: str, begin: int, end: int) -> tuple[T, Callable[[], None]]:
        column, count = self._columns[name][0], end - begin
        values, memory = self._new(count, column)
        runs, width = int(self._runs[end - 1] - self._runs[begin]) + 1, column.rows.shape[1]
        if runs == 1 or count * width >= runs * LARGE or not width:
            return values, partial(memory.fill, self._runs_of(name, begin, end))
        return values, partial(memory.gather, self._rows_of(name), begin, end)

    def _ragged(self, name: str, begin: int, end: int) -> tuple[Any, Callable[[], None]]:
        columns = self._columns[name]
        spans = self._spans_of(name).take(begin, end)
        kind = columns[0].source.kind
        if kind == "ragged":
            values, memory = self._new(spans.total, columns[0])
            return Gathered(values, spans.offsets), self._copy_of(name, spans, begin, end, memory)
        if kind == "binary" and spans.total >= _LONG * (end - begin):
            found: list[bytes] = []
            return found, lambda: found.extend(spans.bytes_of([column.rows for column in columns]))
        # Strings and bytes are made of it, wherever the others are.
        memory = Own(spans.total, 1)
        origins = [OfColumn(column.source.place) for column in columns]
        origin = Taken(origins, self._which[begin:end], self._rows[begin:end])
        rows = Ragged(memory.rows.reshape(-1), spans.offsets, kind, origin)
        return rows, self._copy_of(name, spans, begin, end, memory)

    def _copy_of(self, name: str, spans: Spans, begin: int, end: int, memory: Memory) -> Callable[[], None]:
        columns = [column.rows for column in self._columns[name]]
        if self._is_run(begin, end) and spans.total:
            # Of samples in order there is nothing more to find out, which would take longer than to copy them.
            values = columns[spans.which[0]][spans.starts[0] : spans.starts[-1] + spans.lengths[-1]]
            return partial(memory.fill, [values.reshape(-1).data])
        return partial(spans.copy, columns, memory)

    def _is_run(self, begin: int, end: int) -> bool:
        """Whether these samples follow each other in a shard."""
        return bool(self._runs[begin] == self._runs[end - 1])

    def _runs_of(self, name: str, begin: int, end: int) -> list[memoryview]:
        """Rows that follow each other are copied at once."""
        if self._is_run(begin, end):
            first = self._rows[begin]
            return [self._columns[name][self._which[begin]].rows[first : first + end - begin].reshape(-1).data]
        starts = np.append(begin, begin + 1 + np.flatnonzero(np.diff(self._runs[begin:end])))
        counts = np.diff(starts, append=end)
        runs = zip(self._which[starts].tolist(), self._rows[starts].tolist(), counts.tolist(), strict=True)
        return [self._columns[name][shard].rows[row : row + count].reshape(-1).data for shard, row, count in runs]

    def _rows_of(self, name: str) -> Rows:
        """The column's bytes of all samples, which are few for each."""
        found = self._small.get(name)
        if found is None:
            shards = [shard.rows for shard in self._columns[name]]
            width = shards[0].shape[1]
            found = self._small[name] = Rows(shards, self._which, self._rows * width, width)
        return found

    def _spans_of(self, name: str) -> Spans:
        """Where the column's values of all samples are."""
        found = self._spans.get(name)
        if found is None:
            offsets = [column.source.offsets for column in self._columns[name] if column.source.offsets is not None]
            found = self._spans[name] = Spans.of(offsets, self._which, self._rows)
        return found


def filled(batch: dict[str, Any], check: Callable[[], None], copies: Sequence[Callable[[], None]]) -> dict[str, Any]:
    """The batch, after these copies, from shards that were checked."""
    check()
    for copy in copies:
        copy()
    return batch
