"""Where some tensors lie, by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype


@dataclass(frozen=True)
class TensorSpec:
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
Place = tuple[int, int, TensorSpec]


@dataclass(frozen=True)
class Places:
    """Where some tensors lie.

    Attributes:
        starts: the first byte of each.
        which: its place in `specs`.
        specs: a file's number, and what a tensor is.
    """

    starts: Array
    which: Array
    specs: Sequence[tuple[int, TensorSpec]]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> Place:
        file, spec = self.specs[self.which[number]]
        return file, int(self.starts[number]), spec

    def __iter__(self) -> Iterator[Place]:
        return (self[number] for number in range(len(self)))

    @property
    def files(self) -> Array:
        """The number of each one's file."""
        return np.array([file for file, _ in self.specs])[self.which]

    @property
    def unlike(self) -> int | None:
        """The number of the first that is not what the first of all is."""
        first = self[0][2]
        others = np.array([spec != first for _, spec in self.specs])[self.which]
        return int(others.argmax()) if others.any() else None


def places_of(found: Sequence[Place]) -> Places:
    """Places that were found one by one."""
    specs: dict[tuple[int, TensorSpec], int] = {}
    which = [specs.setdefault((file, spec), len(specs)) for file, _, spec in found]
    return Places(np.array([start for _, start, _ in found], np.int64), np.array(which, np.int64), list(specs))


class Block:
    """Tensors by key: that takes some two hundred bytes for each."""

    def __init__(
        self, keys: Sequence[str], starts: Array, which: Array, specs: Sequence[tuple[int, TensorSpec]]
    ) -> None:
        """`starts` are first bytes, and `which` of the specs each tensor is: a file's number, and what it is.

        Of a key that comes twice the last one counts.
        """
        # One number for each key: a look-up in memory of many keys takes as long as it has things to fetch.
        # What a file of exabytes would have does not fit into 64 bits.
        fit = int(starts.max(initial=0)) < (1 << 62) // max(1, len(specs))
        codes = (starts if fit else starts.astype(object)) * len(specs) + which
        self._codes = dict(zip(keys, codes.tolist(), strict=True))
        self._specs = specs

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def find(self, key: str) -> Place | None:
        code = self._codes.get(key)
        if code is None:
            return None
        start, which = divmod(code, len(self._specs))
        file, spec = self._specs[which]
        return file, start, spec


def find_in(blocks: Sequence[Block], which: Array, keys: Sequence[str]) -> tuple[Places, Array]:
    """Where the tensors of these keys lie, each in one of the blocks, and which of the keys are there."""
    gets = [block._codes.get for block in blocks]
    codes = [gets[number](key) for number, key in zip(which.tolist(), keys, strict=True)]
    there = np.ones(len(keys), bool)
    if None in codes:
        there = np.array([code is not None for code in codes])
        codes, which = [code for code in codes if code is not None], which[there]
    if not codes:
        return places_of([]), there
    # What a file of exabytes would have does not fit into 64 bits.
    coded = np.array(codes, object if max(codes) >> 63 else np.int64)
    counts = np.array([len(block._specs) for block in blocks])
    starts = coded // counts[which]
    most = int(counts.max())
    pairs, spec_of = np.unique((which * most + (coded - starts * counts[which])).astype(np.int64), return_inverse=True)
    specs = [blocks[pair // most]._specs[pair % most] for pair in pairs.tolist()]
    return Places(starts.astype(np.int64), spec_of, specs), there


def joined(found: Sequence[tuple[Places, Array]]) -> Places:
    """The places of keys by their numbers, of which each comes once."""
    places = [places for places, _ in found]
    order = np.argsort(np.concatenate([numbers for _, numbers in found]))
    offsets = np.cumsum([0, *(len(one.specs) for one in places)]).tolist()
    which = np.concatenate([one.which + offset for one, offset in zip(places, offsets, strict=False)])
    specs = [spec for one in places for spec in one.specs]
    return Places(np.concatenate([one.starts for one in places])[order], which[order], specs)
