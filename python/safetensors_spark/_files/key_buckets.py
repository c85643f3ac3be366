"""Buckets of keys, as Spark's hash partitioning divides them; format/dataset.md says how."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

_Hashes = npt.NDArray[np.uint32]
_SEED = 42


def buckets_of(keys: Iterable[str], count: int) -> set[int]:
    """The buckets that the keys are in, of `count`: numbers from 0 on."""
    return set(bucket_of_each(list(keys), count).tolist())


def bucket_of_each(keys: Sequence[str], count: int) -> npt.NDArray[np.int32]:
    """The bucket of each key."""
    by_length = defaultdict(list)
    encoded = [key.encode() for key in keys]
    for row, key in enumerate(encoded):
        by_length[len(key)].append(row)
    found = np.empty(len(keys), np.int32)
    for length, rows in by_length.items():
        found[rows] = _hashes([encoded[row] for row in rows], length).view(np.int32) % count
    return found


def _hashes(keys: list[bytes], length: int) -> _Hashes:
    """Murmur3 (x86, 32 bits) of keys of one length. Each byte after the last whole word is a signed word of its own."""
    words = length // 4
    table = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), length)
    hashes = np.full(len(keys), _SEED, np.uint32)
    for column in np.ascontiguousarray(table[:, : 4 * words]).view("<u4").T:
        hashes = _mixed(hashes, column)
    for column in table[:, 4 * words :].view(np.int8).T:
        hashes = _mixed(hashes, column.astype(np.int32).view(np.uint32))
    return _finished(hashes ^ np.uint32(length))


def _mixed(hashes: _Hashes, words: _Hashes) -> _Hashes:
    words = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return _rotated(hashes ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashes: _Hashes) -> _Hashes:
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _rotated(words: _Hashes, bits: int) -> _Hashes:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
