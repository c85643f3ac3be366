"""In which order an epoch takes the samples of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._permutation import mixed, permuted, shuffled

MOST_SHARDS = 128


@dataclass(frozen=True)
class Shuffle:
    """Shards in a random order, as many at a time as have `window_bytes`; the samples of those in a random order.

    Those of a window are open at the same time, so it also ends with every `MOST_SHARDS` shards.
    """

    seed: int
    window_bytes: int


class Places(Protocol):
    """The places of an epoch, each of which has a sample. It knows nothing of ranks and workers."""

    def take(self, places: Array) -> Array:
        """The numbers of what is at these places, which are given in ascending order."""

    def choose(self, columns: Any, taken: Array) -> Any:
        """What has these numbers, as `Chosen` of the `Columns`."""

    def shards(self, place: int, stop: int) -> list[Shard]:
        """The shards to read from this place on, and next; those that only have places from `stop` on are left out."""


class Order:
    """The samples in the order of the rows; or shuffled, another way each epoch. Any place of it is found at once.

    Attributes:
        windows: the first place of each window, and how many places there are.
    """

    def __init__(self, shards: Sequence[Shard], shuffle: Shuffle | None, epoch: int) -> None:
        """`shards` are a dataset's, their samples counted."""
        counts = np.array([shard.samples for shard in shards], np.int64)
        self._numbers = np.arange(len(shards))
        of_window = self._numbers
        self._key = None if shuffle is None else mixed(shuffle.seed, epoch)
        if shuffle is not None and self._key is not None:
            self._numbers = shuffled(len(shards), self._key)
            sizes = np.array([shard.bytes or 0 for shard in shards], np.int64)[self._numbers]
            of_window = windows(sizes, shuffle.window_bytes)
        self._shards = shards
        self._begins = (np.cumsum(counts) - counts)[self._numbers]
        self._ends = np.cumsum(counts[self._numbers])
        self._starts = self._ends - counts[self._numbers]
        # Where windows begin, and where the last one ends.
        first = np.flatnonzero(np.diff(of_window, prepend=-1))
        self.windows = np.append(self._starts[first], self._ends[-1:])

    def take(self, places: Array) -> Array:
        """The numbers of the samples at these places of the order, which are given in ascending order."""
        if self._key is not None:
            places = self._within_windows(places, self._key)
        at = self._ends.searchsorted(places, side="right")
        return self._begins[at] + places - self._starts[at]

    def choose(self, columns: Any, taken: Array) -> Any:
        return columns.choose(taken)

    def shards(self, place: int, stop: int) -> list[Shard]:
        """The shards to read from this place on: its own and the next, or all of its window and the next one. Those
        that only have places from `stop` on are left out.
        """
        window = int(self.windows.searchsorted(place, side="right")) - 1
        begin, end = self.windows[window], self.windows[min(window + 2, int(self.windows.searchsorted(stop)))]
        first, last = self._starts.searchsorted((begin, end))
        return [self._shards[number] for number in self._numbers[first:last]]

    def window(self, number: int) -> tuple[Array, Array]:
        """The numbers of the window's shards, and in which order it takes the samples of all of them."""
        begin, end = self.windows[number : number + 2].tolist()
        first, last = self._starts.searchsorted((begin, end))
        samples = np.arange(end - begin)
        order = samples if self._key is None else permuted(samples, len(samples), mixed(self._key, begin))
        return self._numbers[first:last], order

    def before_windows(self, amounts: Array) -> Array:
        """The sum of what each shard has, of the shards before each window, and of all."""
        sums = np.concatenate([[0], np.cumsum(amounts[self._numbers])])
        return sums[self._starts.searchsorted(self.windows)]

    def _within_windows(self, places: Array, key: int) -> Array:
        shuffled = np.empty_like(places)
        first = last = 0
        while last < len(places):
            window = int(self.windows.searchsorted(places[first], side="right")) - 1
            begin, end = int(self.windows[window]), int(self.windows[window + 1])
            last = int(places.searchsorted(end, side="left"))
            shuffled[first:last] = begin + permuted(places[first:last] - begin, end - begin, mixed(key, begin))
            first = last
        return shuffled


def windows(sizes: Array, window_bytes: int) -> Array:
    """For each shard, of so many bytes, a number that is that of its window, and greater than those before."""
    by_bytes = (np.cumsum(sizes) - sizes) // window_bytes
    return by_bytes * len(sizes) + np.arange(len(sizes)) // MOST_SHARDS
