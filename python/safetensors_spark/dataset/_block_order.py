"""Blocks of one length of samples that follow each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError, counted
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._columns import Columns
from safetensors_spark.dataset._cut import Cut, Offsets, Pieces
from safetensors_spark.dataset._order import Order, Shuffle
from safetensors_spark.dataset._recent import Recent
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import OpenShards, T, View

_THREADS = 16
# A block seldom has samples of more windows, and a mixture takes blocks of more epochs at the same time.
_WINDOWS = 2
_EPOCHS = 2


class BlockSamples(Samples):
    """Samples whose values are taken in blocks. Headers tell how many values each shard has."""

    def __init__(self, samples: Samples, length: int) -> None:
        self._samples, self.length, self.contents = samples, length, samples.contents
        self._place(samples.location, samples._read, samples.shards)
        check_ragged(samples, "blocks")
        # What a batch has of them.
        self.kinds = dict.fromkeys(self.columns, "fixed")
        with ThreadPoolExecutor(_THREADS) as threads:
            self._values = np.fromiter(threads.map(self._count, self.shards), np.int64, len(self.shards))
        if not self.places and len(samples):
            total = counted(int(self._values.sum()), "value")
            raise SafetensorsSparkError(
                f"{self.location}: all samples together have {total}, which fill no block of {self.length:,}. Give a "
                "smaller `length`."
            )
        self._orders: Recent[_BlockOrder] = Recent(_EPOCHS)

    @property
    def places(self) -> int:
        return int(self._values.sum()) // self.length

    @property
    def fingerprint(self) -> str:
        return f"{self._samples.fingerprint}, blocks of {self.length}"

    def open(self, view: View[T]) -> OpenShards[T]:
        return self._samples.open(view)

    def pieces(self, offsets: Offsets, numbers: Array, shuffle: Shuffle | None) -> Pieces:
        """Of what these blocks consist. They are counted over all epochs, and given in ascending order."""
        epochs, places = np.divmod(numbers, self.places)
        found = []
        for epoch in np.unique(epochs).tolist():
            some = np.flatnonzero(epochs == epoch)
            found.append(self._order(shuffle, epoch).pieces(offsets, places[some]).of_rows(some))
        return Pieces.joined(found)

    def cut(self, columns: Columns[Any, Any], pieces: Pieces, count: int) -> Cut:
        return Cut(columns, pieces, self.length)

    def _order(self, shuffle: Shuffle | None, epoch: int) -> _BlockOrder:
        key = shuffle, epoch
        return self._orders.get(key) or self._orders.keep(key, _BlockOrder(self, shuffle, epoch))

    def _batches(self, size: int) -> str:
        return f"batches of {size:,} blocks"

    def _count(self, shard: Shard) -> int:
        name = self.columns[0]
        found = self._samples._header(shard).by_name.get(name)
        if found is None or not found.shape:
            raise SafetensorsSparkError(f"{self.location}: {shard.file} has no values of the column `{name:.200}`.")
        return found.shape[0]


class _BlockOrder:
    """The samples of an order one after the other, cut into blocks of so many values; what is left in the end is no
    block.
    """

    def __init__(self, samples: BlockSamples, shuffle: Shuffle | None, epoch: int) -> None:
        self._samples, self._shuffle, self._length = samples, shuffle, samples.length
        self._first = epoch * samples.places
        self._order = Order(samples.shards, shuffle, epoch)
        # How many values come before each window, and how many there are.
        self._before = self._order.before_windows(samples._values)
        self._open: Recent[_Window] = Recent(_WINDOWS)

    def take(self, places: Array) -> Array:
        return places + self._first

    def shards(self, place: int, stop: int) -> list[Shard]:
        windows = self._order.windows
        first = int(self._before.searchsorted(place * self._length, side="right")) - 1
        return self._order.shards(int(windows[first]), int(windows[self._before.searchsorted(stop * self._length)]))

    def choose(self, columns: Columns[Any, Any], taken: Array) -> Cut:
        return self._samples.cut(columns, self._samples.pieces(columns.offsets, taken, self._shuffle), len(taken))

    def pieces(self, offsets: Offsets, places: Array) -> Pieces:
        """Of what the blocks at these places consist."""
        begins = places * self._length
        first = int(self._before.searchsorted(begins[0], side="right")) - 1
        last = int(self._before.searchsorted(begins[-1] + self._length))
        windows = range(first, last)
        found = [self._window(window, offsets).cut(begins - self._before[window], self._length) for window in windows]
        return Pieces.joined(found)

    def _window(self, number: int, offsets: Offsets) -> _Window:
        return self._open.get(number) or self._open.keep(number, _Window.of(offsets, *self._order.window(number)))


@dataclass(frozen=True)
class _Window:
    """The samples of a window in their order.

    Attributes:
        which: the number of each one's shard.
        starts: its first value there.
        bounds: how many values the samples before it have, and all.
    """

    which: Array
    starts: Array
    bounds: Array

    @classmethod
    def of(cls, offsets: Offsets, shards: Array, order: Array) -> _Window:
        """The samples of these shards, in this order of all of them."""
        found = [offsets(shard) for shard in shards.tolist()]
        which = np.repeat(shards, [len(one) - 1 for one in found])[order]
        starts = np.concatenate([one[:-1] for one in found])[order]
        lengths = np.concatenate([np.diff(one) for one in found])[order]
        return cls(which, starts, np.concatenate([[0], np.cumsum(lengths)]))

    def cut(self, begins: Array, length: int) -> Pieces:
        """What the window has of blocks of this length, which begin so many values behind its first one."""
        begins, ends = np.clip((begins, begins + length), 0, self.bounds[-1])
        rows = np.flatnonzero(begins < ends)
        begins, ends = begins[rows], ends[rows]
        firsts = self.bounds[1:].searchsorted(begins, side="right")
        counts = self.bounds[1:].searchsorted(ends) - firsts + 1
        pieces = np.repeat(np.arange(len(rows)), counts)
        at = np.arange(len(pieces)) + np.repeat(firsts - (np.cumsum(counts) - counts), counts)
        starts = np.maximum(self.bounds[at], begins[pieces])
        lengths = np.minimum(self.bounds[at + 1], ends[pieces]) - starts
        return Pieces(rows[pieces], self.which[at], self.starts[at] + starts - self.bounds[at], lengths)


def check_ragged(samples: Samples, what: str) -> None:
    """Raises `SafetensorsSparkError` for samples with a column of which there are no such things."""
    for column in samples._read:
        partition = column in samples.contents.partition_columns
        if partition or not column.has_offsets:
            raise SafetensorsSparkError(
                f"{samples.location}: the column `{column.name:.200}` is "
                f"{'of partitions' if partition else column.kind}, and {what} are of columns whose samples differ in "
                "length: name those with `open_dataset(..., columns=[...])`."
            )
    if not samples.columns:
        raise SafetensorsSparkError(f"{samples.location} is read without columns, of which there are no {what}.")
