"""Random orders that a key tells, the same on every machine and by every version of NumPy."""

from __future__ import annotations

from math import isqrt

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# Fewer rounds, or a smaller table, and some orders come more often than others (`test_order.py` counts them).
_ROUNDS = 8
_LEAST = 8


def mixed(*numbers: int) -> int:
    """64 bits of which each depends on all of the numbers: splitmix64, one step for each."""
    state = 0
    for number in numbers:
        state = (state ^ (number & _MASK)) + _GOLDEN & _MASK
        state = (state ^ state >> 30) * _FIRST & _MASK
        state = (state ^ state >> 27) * _SECOND & _MASK
        state ^= state >> 31
    return state


def shuffled(size: int, key: int) -> Array:
    """The numbers 0 to `size - 1` in the key's order."""
    hashed = (np.arange(size, dtype=np.uint64) + np.uint64(key)) * np.uint64(_GOLDEN)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        hashed ^= hashed >> np.uint64(shift)
        hashed *= np.uint64(factor)
    return np.argsort(hashed ^ hashed >> np.uint64(31), kind="stable")


def permuted(numbers: Array, size: int, key: int) -> Array:
    """Where the key's permutation of 0 to `size - 1` puts these numbers; `size` is below 2^62.

    Nothing of it is kept: a number is a place in a table of nearly as many places, and a Feistel network moves its
    column by what its row says, and its row by what its column says, in turns. What ends outside of 0 to `size - 1`
    continues from there until it is inside.
    """
    columns = max(_LEAST, isqrt(max(size - 1, 0)) + 1)
    rows = max(_LEAST, -(-size // columns))
    keys = [np.uint64(mixed(key, turn)) for turn in range(_ROUNDS)]
    found = numbers.astype(np.uint64)
    outside = np.arange(len(found))
    while len(outside):
        row, column = np.divmod(found[outside], np.uint64(columns))
        for turn in range(0, _ROUNDS, 2):
            column = _moved(column, row, columns, keys[turn])
            row = _moved(row, column, rows, keys[turn + 1])
        found[outside] = row * np.uint64(columns) + column
        outside = outside[found[outside] >= size]
    return found.astype(np.int64)


def _moved(place: Array, other: Array, size: int, key: np.uint64) -> Array:
    """The place, moved round a ring of that size by what the other one and the key say."""
    hashed = (other + key) * np.uint64(_FIRST)
    hashed ^= hashed >> np.uint64(32)
    hashed *= np.uint64(_SECOND)
    # The upper half as a fraction of the ring.
    hashed >>= np.uint64(32)
    hashed *= np.uint64(size)
    hashed >>= np.uint64(32)
    hashed += place
    hashed -= np.uint64(size) * (hashed >= size)
    return hashed
