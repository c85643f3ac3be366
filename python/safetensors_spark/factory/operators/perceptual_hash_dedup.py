"""Deduplication of similar images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Deduplicator, Keys

_BITS = 64
# Different hashes that share a part of their bits, of which all pairs are compared.
_COMPARED = 4096


class PerceptualHashDedup(Deduplicator):
    """Drops images whose perceptual hash differs from that of an earlier image in few bits.

    `perceptual_hash` computes the hash in an earlier stage. Two hashes that differ in `distance` bits are equal in one
    of `distance + 1` parts, which is used to find them; all pairs with a common part are compared, but if more than
    4096 different hashes share a part, each is compared with that many before it. Images connected through others
    are one group, of which the first image is kept. A row without a hash is kept.
    """

    type = "perceptual_hash_dedup"

    field: str = Field(default="phash", description="The field of hashes: 16 hexadecimal digits.")
    distance: int = Field(
        default=4, ge=0, le=15, description="The maximum number of the 64 bits in which duplicates differ."
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def keys(self, batch: pa.RecordBatch) -> Keys:
        texts = batch.column(self.field).to_pylist()
        rows = np.array([row for row, text in enumerate(texts) if text is not None], np.int64)
        hashes = np.array([int(texts[row], 16) for row in rows.tolist()], np.uint64)
        parts = []
        for part in range(self.distance + 1):
            first, last = (_BITS * one // (self.distance + 1) for one in (part, part + 1))
            bits = (hashes >> np.uint64(first)) & np.uint64((1 << (last - first)) - 1)
            parts.append(_mixed(bits * np.uint64(16) + np.uint64(part)))
        keys = np.stack([np.concatenate(parts), np.tile(hashes, len(parts))], axis=1)
        return Keys(np.tile(rows, len(parts)), keys)

    def pairs(self, keys: Any, places: Any) -> Any:
        order = np.lexsort((places, keys[:, 1], keys[:, 0]))
        keys, places = keys[order], places[order]
        found = [super().pairs(keys, places)]
        # Of equal hashes the first one is compared with others.
        is_first = np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.empty(0, bool)
        keys, places = keys[is_first], places[is_first]
        for back in range(1, _COMPARED + 1):
            shared = np.flatnonzero(keys[back:, 0] == keys[:-back, 0])
            if not len(shared):
                break
            near = shared[_differing(keys[shared + back, 1], keys[shared, 1]) <= self.distance]
            found.append(np.sort(np.stack([places[near + back], places[near]], 1), axis=1)[:, ::-1])
        return np.concatenate(found)


def _mixed(numbers: Any) -> Any:
    """Pseudorandom numbers, a different one for each number."""
    numbers = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return numbers ^ (numbers >> np.uint64(32))


def _differing(some: Any, others: Any) -> Any:
    """The number of bits in which numbers differ."""
    return np.unpackbits((some ^ others).view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
