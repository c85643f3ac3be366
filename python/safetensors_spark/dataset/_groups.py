"""Samples in groups that their lengths decide."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._lengths import sample_lengths
from safetensors_spark.dataset._order import Order, Places, Shuffle, windows
from safetensors_spark.dataset._recent import Recent
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import OpenShards, T, View

_THREADS = 16
# Windows whose groups are kept; the others are made again when they are needed.
_KEPT = 3


@dataclass(frozen=True)
class Groups:
    """Samples of a window by groups.

    Attributes:
        samples: their numbers in the window, group after group.
        bounds: where each group begins, and the last one ends.
        begins, lengths: which values of each sample; None for all.
    """

    samples: Array
    bounds: Array
    begins: Array | None = None
    lengths: Array | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1


class Grouping(Protocol):
    """How samples are put into groups. It is told in states, so that it must be a value with a `repr`."""

    def __call__(self, lengths: Array, window: int) -> Groups:
        """The groups of samples of these lengths, which are all those of the window of this number.

        Raises `TooLongError` for a sample that has no place in a group.
        """


class TooLongError(Exception):
    """A sample, by its number in the window, that has no place in a group: what it has, and what was expected."""

    def __init__(self, sample: int, has: str, expected: str) -> None:
        super().__init__(sample, has, expected)
        self.sample, self.has, self.expected = sample, has, expected


class GroupedSamples(Samples):
    """Samples in groups, which are the same in all epochs: an epoch takes the groups in its order.

    A group has samples of one window: of shards that follow each other. Their offsets, and nothing else, are read to
    find how many groups there are, and again when a window is taken.
    """

    def __init__(self, samples: Samples, column: str, grouping: Grouping, window_bytes: int) -> None:
        """`column` is the one whose values count."""
        self._samples, self._column, self._grouping, self.contents = samples, column, grouping, samples.contents
        self._place(samples.location, samples._read, samples.shards)
        sizes = np.array([shard.bytes or 0 for shard in self.shards], np.int64)
        first = np.flatnonzero(np.diff(windows(sizes, window_bytes), prepend=-1))
        self._windows = list(pairwise([*first.tolist(), len(self.shards)]))
        self._kept: Recent[Groups] = Recent(_KEPT)
        counts = [len(self.groups(window)) for window in range(len(self._windows))]
        self._firsts = np.cumsum([0, *counts])
        self._as_shards = [
            Shard(str(window), int(sizes[begin:end].sum()), count)
            for window, ((begin, end), count) in enumerate(zip(self._windows, counts, strict=True))
        ]

    @property
    def places(self) -> int:
        return int(self._firsts[-1])

    @property
    def fingerprint(self) -> str:
        return f"{self._samples.fingerprint}, {self._grouping!r} of {self._column} in {len(self._windows)} windows"

    def open(self, view: View[T]) -> OpenShards[T]:
        return self._samples.open(view)

    def groups(self, window: int) -> Groups:
        """The groups of the window."""
        found = self._kept.get(window)
        return found or self._kept.keep(window, self._grouped(window))

    def members(self, group: int) -> tuple[Array, ...]:
        """The numbers of the group's samples; and their first values and lengths, if it has parts of them."""
        window = int(self._firsts.searchsorted(group, side="right")) - 1
        found, first = self.groups(window), self.begins[self._windows[window][0]]
        begin, end = found.bounds[group - self._firsts[window] :][:2]
        parts = (part[begin:end] for part in (found.begins, found.lengths) if part is not None)
        return found.samples[begin:end] + first, *parts

    def shards_of(self, window: int) -> tuple[Shard, ...]:
        """The shards of the window."""
        return self.shards[slice(*self._windows[window])]

    def choose(self, columns: Any, taken: Array) -> Any:
        """What batches take of an order, as they have it."""
        return columns.choose(taken)

    def _order(self, shuffle: Shuffle | None, epoch: int) -> Places:
        return _GroupOrder(self, Order(self._as_shards, shuffle, epoch))

    def _grouped(self, window: int) -> Groups:
        with ThreadPoolExecutor(_THREADS) as threads:
            shards = self.shards_of(window)
            lengths = list(threads.map(lambda shard: sample_lengths(self._samples, shard, self._column), shards))
        try:
            return self._grouping(np.concatenate(lengths), window)
        except TooLongError as error:
            number = error.sample + int(self.begins[self._windows[window][0]])
            raise SafetensorsSparkError(
                f"{self.location}: sample {number}, in {self.shards[self.which(number)].file}, has {error.has} of "
                f"`{self._column:.200}`, {error.expected}."
            ) from None


class _GroupOrder:
    def __init__(self, samples: GroupedSamples, order: Order) -> None:
        self._samples, self._order = samples, order

    def take(self, places: Array) -> Array:
        return self._order.take(places)

    def choose(self, columns: Any, taken: Array) -> Any:
        return self._samples.choose(columns, taken)

    def shards(self, place: int, stop: int) -> list[Shard]:
        found = self._order.shards(place, stop)
        return [shard for window in found for shard in self._samples.shards_of(int(window.file))]
