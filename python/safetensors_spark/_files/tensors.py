"""Tensors of a header: one by one, and as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.numpy_dtypes import Array


class TensorInfo(NamedTuple):
    """A tensor of a header. `begin` and `end` are bytes of the byte buffer, not of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Tensors:
    """Tensors as columns: a header may have millions.

    Attributes:
        names: the name of each.
        kinds: dtypes with shapes.
        kind_of: the place of each one's dtype and shape in `kinds`.
        begins: the first byte of each in the byte buffer.
        ends: the byte after its last.
    """

    names: list[str]
    kinds: Sequence[tuple[str, tuple[int, ...]]]
    kind_of: Array
    begins: Array
    ends: Array

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> TensorInfo:
        dtype, shape = self.kinds[self.kind_of[number]]
        return TensorInfo(self.names[number], dtype, shape, int(self.begins[number]), int(self.ends[number]))

    def __iter__(self) -> Iterator[TensorInfo]:
        columns = (column.tolist() for column in (self.kind_of, self.begins, self.ends))
        for name, kind, begin, end in zip(self.names, *columns, strict=True):
            dtype, shape = self.kinds[kind]
            yield TensorInfo(name, dtype, shape, begin, end)

    def take(self, numbers: Array) -> Tensors:
        """Those of these numbers, in their order."""
        names = [self.names[number] for number in numbers.tolist()]
        return Tensors(names, self.kinds, self.kind_of[numbers], self.begins[numbers], self.ends[numbers])

    @cached_property
    def by_name(self) -> Mapping[str, TensorInfo]:
        return _ByName(self)


class _ByName(Mapping[str, TensorInfo]):
    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._numbers = {name: number for number, name in enumerate(tensors.names)}

    def __getitem__(self, name: str) -> TensorInfo:
        return self._tensors[self._numbers[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def columns_of(tensors: Sequence[TensorInfo]) -> Tensors:
    """The same tensors as columns. Offsets beyond 63 bits are kept as Python's integers."""
    kinds: dict[tuple[str, tuple[int, ...]], int] = {}
    kind_of = [kinds.setdefault((one.dtype, one.shape), len(kinds)) for one in tensors]
    begins, ends = [one.begin for one in tensors], [one.end for one in tensors]
    kind = object if max((0, *begins, *ends)) >> 63 else np.int64
    names = [one.name for one in tensors]
    return Tensors(names, list(kinds), np.array(kind_of, np.int32), np.array(begins, kind), np.array(ends, kind))
