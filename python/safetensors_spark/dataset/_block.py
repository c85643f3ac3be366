"""Where some tensors lie, in the order of their keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from safetensors_spark._contents import File
from safetensors_spark._header import DTYPES
from safetensors_spark._numpy_dtypes import numpy_dtype

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """What tensors may have in common."""

    dtype: str
    shape: tuple[int, ...]

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """Raises `InvalidTensorError`, or `MissingExtraError`, where NumPy has no type for it."""
        return numpy_dtype(self.dtype)

    @cached_property
    def bytes(self) -> int | None:
        """How many a tensor has; None where there is no such tensor."""
        if self.dtype not in DTYPES or any(dim < 0 for dim in self.shape):
            return None
        bits = prod(self.shape) * DTYPES[self.dtype]
        return None if bits % 8 else bits // 8


# Where a tensor lies: the file's number, its first byte there, and what it is.
Place = tuple[int, int, Kind]


class Block:
    """Tensors in the order of their keys, as columns: that takes about a hundred bytes for each."""

    def __init__(self, keys: list[str], files: Array, starts: Array, kinds: list[Kind], kind_of: Array) -> None:
        self.keys = keys
        self._files, self._starts, self._kinds, self._kind_of = files, starts, kinds, kind_of

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: str) -> Place | None:
        keys = self.keys
        at = bisect_left(keys, key)
        if at == len(keys) or keys[at] != key:
            return None
        return self._files.item(at), self._starts.item(at), self._kinds[self._kind_of.item(at)]

    def fault(self, files: tuple[File, ...], ends: Array) -> str | None:
        """What is wrong with the places, for one of the keys."""
        for earlier, later in pairwise(self.keys):
            if earlier >= later:
                return f"its entry for `{later:.200}` does not come behind the one for `{earlier:.200}`"
        first = np.array([file.shard.header_bytes if file.shard else 0 for file in files], np.int64)
        length = np.array([file.expected_bytes or 0 for file in files], np.int64)
        size = np.array([-1 if kind.bytes is None else min(kind.bytes, 1 << 62) for kind in self._kinds], np.int64)
        outside = (self._starts < first[self._files]) | (ends > length[self._files])
        wrong = np.flatnonzero(outside | (ends - self._starts != size[self._kind_of]))
        if not len(wrong):
            return None
        at = int(wrong[0])
        kind, file = self._kinds[self._kind_of[at]], files[self._files[at]]
        return (
            f"its entry for `{self.keys[at]:.200}` says that {kind.dtype} {list(kind.shape)} is at the bytes "
            f"{self._starts[at]} to {ends[at]} of {file.name}, which cannot be: that has {file.expected_bytes} bytes, "
            f"and such a tensor {'does not exist' if kind.bytes is None else f'has {kind.bytes}'}"
        )


def block_of(places: Iterable[tuple[str, Place]]) -> Block:
    """A block of these tensors; of a key that comes twice the last one counts."""
    found = dict(places)
    keys = sorted(found)
    kinds: dict[Kind, int] = {}
    kind_of = np.array([kinds.setdefault(found[key][2], len(kinds)) for key in keys], np.int32)
    files = np.array([found[key][0] for key in keys], np.int32)
    starts = np.array([found[key][1] for key in keys], np.int64)
    return Block(keys, files, starts, list(kinds), kind_of)
