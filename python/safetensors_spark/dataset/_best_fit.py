"""Samples into sequences of one length: best fit, the longest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._groups import Groups, TooLongError

Long = Literal["error", "split", "truncate"]


@dataclass(frozen=True)
class BestFit:
    """Groups of samples, or of pieces of long ones, that have `length` values at most; empty samples are in none."""

    length: int
    long: Long

    def __call__(self, lengths: Array, window: int) -> Groups:
        samples, begins, sizes = self._pieces(lengths)
        group = best_fit(sizes, self.length)
        # Groups in the order of their first samples, and samples in that of rows.
        _, first, group = np.unique(group, return_index=True, return_inverse=True)
        group = np.argsort(np.argsort(first))[group]
        order = np.argsort(group, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(first)))])
        return Groups(samples[order], bounds, begins[order], sizes[order])

    def _pieces(self, lengths: Array) -> tuple[Array, Array, Array]:
        """The samples that are not empty, piece by piece: their numbers, the first value of a piece, and its length."""
        longest = int(lengths.argmax())
        if self.long == "error" and lengths[longest] > self.length:
            expected = f"expected {self.length:,} at most: or say `long='split'` or `long='truncate'`"
            raise TooLongError(longest, f"{lengths[longest]:,} values", expected)
        if self.long == "truncate":
            lengths = np.minimum(lengths, self.length)
        counts = -(-lengths // self.length)
        samples = np.repeat(np.arange(len(lengths)), counts)
        begins = (np.arange(len(samples)) - np.repeat(np.cumsum(counts) - counts, counts)) * self.length
        return samples, begins, np.minimum(lengths[samples] - begins, self.length)


def best_fit(sizes: Array, length: int) -> Array:
    """For each size, from 1 to `length`, the number of the bin that it goes into.

    From the largest to the smallest, each goes into the bin with the least room that is enough, or into a new one. All
    of one size are placed together: a bin that has room for several takes them one after the other.
    """
    order = np.argsort(-sizes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(sizes[order])) + 1, len(sizes)).tolist()
    bins = _Bins(length)
    found = np.empty(len(sizes), np.int64)
    at = 0
    for end in ends:
        size = int(sizes[order[at]]) if at < end else 0
        while at < end:
            some, each = bins.take(size, end - at)
            count = min(len(some) * each, end - at)
            found[order[at : at + count]] = np.repeat(some, each)[:count]
            bins.put(some, size, each, count)
            at += count
    return found


class _Bins:
    """Bins by the room that they have."""

    def __init__(self, length: int) -> None:
        self._length, self._count = length, 0
        self._by_room: dict[int, list[Array]] = {}
        # Which rooms there are, as bits.
        self._rooms = 0

    def take(self, size: int, count: int) -> tuple[Array, int]:
        """Bins with the least room, or new ones, for as many of this size; and how many fit into each."""
        enough = self._rooms >> size
        if not enough:
            each = self._length // size
            first, self._count = self._count, self._count - (-count // each)
            self._room = self._length
            return np.arange(first, self._count), each
        self._room = room = size + (enough & -enough).bit_length() - 1
        each = room // size
        some = self._by_room[room].pop()
        needed = -(-count // each)
        if len(some) > needed:
            self._by_room[room].append(some[needed:])
        if not self._by_room[room]:
            self._rooms ^= 1 << room
        return some[:needed], each

    def put(self, some: Array, size: int, each: int, count: int) -> None:
        """The bins that were taken last, after `each` of that size went into each, and into the last one the rest."""
        last = count - each * (len(some) - 1)
        self._add(some[:-1], self._room - each * size)
        self._add(some[-1:], self._room - last * size)

    def _add(self, some: Array, room: int) -> None:
        if len(some) and room:
            self._by_room.setdefault(room, []).append(some)
            self._rooms |= 1 << room
