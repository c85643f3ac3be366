"""The samples of several datasets in one order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._columns import Columns
from safetensors_spark.dataset._cut import Pieces, Rows
from safetensors_spark.dataset._joined import Joined, of_part
from safetensors_spark.dataset._order import Places, Shuffle
from safetensors_spark.dataset._permutation import mixed, permuted
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shares import Shares


class Mixed(Joined):
    """The samples of datasets, in an order that takes of each its share."""

    def __init__(self, parts: Sequence[Samples], shares: Shares, places: int | None) -> None:
        """`places` is how many samples an epoch takes; None for as many as all parts have."""
        super().__init__(parts, " and ".join(part.location for part in parts))
        self._shares = shares
        self._places = sum(part.places for part in parts) if places is None else places

    @property
    def places(self) -> int:
        return self._places

    @property
    def fingerprint(self) -> str:
        told = repr(([part.fingerprint for part in self.parts], self._shares.fingerprint))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def _order(self, shuffle: Shuffle | None, epoch: int) -> Places:
        return _MixedOrder(self, self._shares, shuffle, epoch * self._places)

    def choose(self, columns: Any, which: Array, numbers: Array, shuffles: Sequence[Shuffle | None]) -> Any:
        """Samples, each by its dataset and its number there. The datasets are shuffled like this."""
        return columns.choose(np.array(self.firsts)[which] + numbers)


class MixedRows(Mixed):
    """Blocks or packs of datasets, all of one length, in an order that takes of each its share."""

    def __init__(self, parts: Sequence[Samples], rows: Sequence[Rows], shares: Shares, places: int | None) -> None:
        """`rows` are the parts."""
        super().__init__(parts, shares, places)
        self._rows, self.kinds = rows, parts[0].kinds

    def choose(
        self, columns: Columns[Any, Any], which: Array, numbers: Array, shuffles: Sequence[Shuffle | None]
    ) -> Any:
        found = []
        for part in np.unique(which).tolist():
            some, first = np.flatnonzero(which == part), self.first_shards[part]
            offsets = partial(_offsets, columns, first)
            found.append(self._rows[part].pieces(offsets, numbers[some], shuffles[part]).of_rows(some, first))
        return self._rows[0].cut(columns, Pieces.joined(found), len(which))

    def _batches(self, size: int) -> str:
        return self.parts[0]._batches(size)


def _offsets(columns: Columns[Any, Any], first: int, shard: int) -> Array:
    return columns.offsets(first + shard)


class _MixedOrder:
    """The places of an epoch, of which the first is the place `begin` of the whole stream."""

    def __init__(self, samples: Mixed, shares: Shares, shuffle: Shuffle | None, begin: int) -> None:
        self._samples, self._shares, self._begin = samples, shares, begin
        # Datasets of equal lengths have orders of their own.
        self._shuffles = [
            shuffle and replace(shuffle, seed=mixed(shuffle.seed, part)) for part in range(len(samples.parts))
        ]
        # The last order of each dataset, which takes a while to make for many shards.
        self._orders: dict[int, tuple[int, Places]] = {}

    def take(self, places: Array) -> Array:
        step, skipped = divmod(self._begin + int(places[0]), self._shares.size)
        taken = self._shares.before(step)
        which, index = self._drawn(places - places[0] + skipped, step, taken)
        numbers = np.empty(len(places), np.int64)
        for part in np.unique(which).tolist():
            some = np.flatnonzero(which == part)
            # One number tells both.
            numbers[some] = self._of(part, taken[part], index[some]) * len(taken) + part
        return numbers

    def choose(self, columns: Any, taken: Array) -> Any:
        numbers, which = np.divmod(taken, len(self._shuffles))
        return self._samples.choose(columns, which, numbers, self._shuffles)

    def shards(self, place: int, stop: int) -> list[Shard]:
        taken = self._shares.before((self._begin + place) // self._shares.size)
        return [shard for part, count in enumerate(taken) for shard in self._next(part, count)]

    def _drawn(self, places: Array, first: int, taken: Sequence[int]) -> tuple[Array, Array]:
        """For each place its dataset, and how many samples of that one come before it.

        Places and samples are counted from the begin of the first step, which all steps before have `taken`.
        """
        size = self._shares.size
        which, index = np.empty_like(places), np.empty_like(places)
        begin = 0
        while begin < len(places):
            step = int(places[begin]) // size
            end = int(places.searchsorted((step + 1) * size))
            before = self._shares.before(first + step)
            since = np.array([now - then for now, then in zip(before, taken, strict=True)], np.int64)
            drawn, earlier = self._step(first + step)
            within = places[begin:end] - step * size
            which[begin:end] = drawn[within]
            index[begin:end] = since[drawn[within]] + earlier[within]
            begin = end
        return which, index

    def _step(self, step: int) -> tuple[Array, Array]:
        """For each place of the step its dataset, and how many places of that one are before it in the step."""
        ends, size = np.cumsum(self._shares.of(step)), self._shares.size
        drawn = ends.searchsorted(permuted(np.arange(size), size, mixed(self._shares.seed, step)), side="right")
        grouped = np.argsort(drawn, kind="stable")
        earlier = np.empty_like(grouped)
        earlier[grouped] = np.arange(size) - np.append(0, ends[:-1])[drawn[grouped]]
        return drawn, earlier

    def _of(self, part: int, taken: int, index: Array) -> Array:
        """The numbers of samples of a dataset, given in ascending order, that come so many after those taken."""
        size = self._samples.parts[part].places
        epoch, place = divmod(taken, size)
        epochs, places = np.divmod(index + place, size)
        starts = np.flatnonzero(np.diff(epochs, prepend=-1)).tolist()
        found = [
            self._order(part, epoch + int(epochs[begin])).take(places[begin:end])
            for begin, end in zip(starts, [*starts[1:], len(index)], strict=True)
        ]
        return np.concatenate(found)

    def _next(self, part: int, taken: int) -> Sequence[Shard]:
        """The shards of a dataset to read when so many of its samples were taken; of the next epoch, too, at the end
        of one.
        """
        size = self._samples.parts[part].places
        epoch, place = divmod(taken, size)
        order = self._order(part, epoch)
        found = dict.fromkeys(order.shards(place, size))
        if found.keys() >= set(order.shards(size - 1, size)):
            found |= dict.fromkeys(self._order(part, epoch + 1).shards(0, size))
        return of_part(part, list(found))

    def _order(self, part: int, epoch: int) -> Places:
        kept = self._orders.get(part)
        if kept is None or kept[0] != epoch:
            kept = self._orders[part] = epoch, self._samples.parts[part]._order(self._shuffles[part], epoch)
        return kept[1]
