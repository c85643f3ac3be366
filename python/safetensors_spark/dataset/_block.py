"""Where some tensors lie, in the order of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from safetensors_spark._header import DTYPES
from safetensors_spark._numpy_dtypes import numpy_dtype


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
    """Tensors in the order of their keys: that takes some two hundred bytes for each."""

    def __init__(self, starts: Mapping[str, int], which: Iterable[int], kinds: Sequence[tuple[int, Kind]]) -> None:
        """`starts` are first bytes, and `which` of the kinds each tensor is: a file's number, and what it is."""
        # One number for each key: a look-up in memory of many keys takes as long as it has things to fetch.
        codes = (start * len(kinds) + kind for start, kind in zip(starts.values(), which, strict=True))
        self._codes = dict(zip(starts, codes, strict=True))
        self._kinds = kinds

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._codes)

    def find(self, key: str) -> Place | None:
        code = self._codes.get(key)
        if code is None:
            return None
        start, which = divmod(code, len(self._kinds))
        file, kind = self._kinds[which]
        return file, start, kind


def block_of(places: Iterable[tuple[str, Place]]) -> Block:
    """A block of these tensors; of a key that comes twice the last one counts."""
    found = dict(sorted(dict(places).items(), key=itemgetter(0)))
    kinds: dict[tuple[int, Kind], int] = {}
    which = [kinds.setdefault((file, kind), len(kinds)) for file, _, kind in found.values()]
    return Block({key: start for key, (_, start, _) in found.items()}, which, list(kinds))
