"""Samples of mapped shards, copied once, into tensors that their consumer owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark.dataset._gather import LARGE, Span
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import Array, Part

Batch = dict[str, Tensor]

DTYPES: Mapping[str, torch.dtype] = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
} | {
    # Older versions of PyTorch lack them.
    name: getattr(torch, attribute)
    for name, attribute in (("F8_E8M0", "float8_e8m0fnu"), ("F4", "float4_e2m1fn_x2"))
    if hasattr(torch, attribute)
}


@dataclass(frozen=True)
class Column:
    """A tensor of a mapped shard: a row of bytes for each sample."""

    rows: Array
    dtype: torch.dtype
    shape: tuple[int, ...]


def as_column(dtype: str, shape: tuple[int, ...], data: Array) -> Column:
    """A `View` of a shard's tensor."""
    if dtype not in DTYPES:
        raise InvalidTensorError(f"{dtype} is no dtype of PyTorch {torch.__version__}.")
    if dtype == "F4":
        shape = _pairs(shape)
    rows = data.reshape(shape[0], -1) if len(data) else np.empty((shape[0], 0), np.uint8)
    return Column(rows, DTYPES[dtype], shape[1:])


def _pairs(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape as PyTorch counts it, which has two elements of four bits in one."""
    if len(shape) < 2 or shape[-1] % 2:
        raise InvalidTensorError(
            f"its shape is {list(shape)}, and PyTorch has F4 only in pairs along the last dimension."
        )
    return (*shape[:-1], shape[-1] // 2)


class Columns:
    """The columns of a dataset. May be used from many threads, and sent to other processes."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._shards = samples.shards(as_column)

    def choose(self, numbers: Array) -> Chosen:
        """The samples of these numbers, one or more."""
        which, rows = self._samples.locate(numbers)
        needed, which = np.unique(which, return_inverse=True)
        shards = [self._shards.columns(self._samples.parts[number]) for number in needed]
        columns = {name: _same([shard[name] for shard in shards], name) for name in self._samples.columns}
        return Chosen(columns, which, rows)

    def prefetch(self, parts: Sequence[Part]) -> None:
        """Says which shards will be needed next."""
        self._shards.prefetch(parts)


def _same(columns: Sequence[Column], name: str) -> Sequence[Column]:
    first = columns[0]
    for column in columns:
        if (column.dtype, column.shape) != (first.dtype, first.shape):
            raise InvalidTensorError(
                f"column `{name}` has samples of {first.dtype} {list(first.shape)} in one shard and of {column.dtype} "
                f"{list(column.shape)} in another, which cannot be stacked: take them one by one."
            )
    return columns


class Chosen:
    """Samples that were chosen, to be taken piece by piece: what all pieces need is done once.

    It keeps the maps of their shards, whose bytes are copied by address.
    """

    def __init__(self, columns: Mapping[str, Sequence[Column]], which: Array, rows: Array) -> None:
        """`columns` are those of some shards, `which` of them has each sample, and `rows` are its numbers there."""
        self._columns = columns
        self._which, self._rows = which, rows
        # Where a row does not follow the one before it.
        self._breaks = (np.diff(rows, prepend=-2) != 1) | (np.diff(which, prepend=-1) != 0)
        self._spans = {name: Span([shard.rows for shard in shards]) for name, shards in columns.items()}

    def take(self, begin: int, end: int) -> Batch:
        """A piece of them, stacked."""
        return self.piece(begin, end)()

    def piece(self, begin: int, end: int) -> Callable[[], Batch]:
        """What copies a piece of them, in any thread.

        Memory for it is taken here: what threads take for themselves, C's library gives back and fetches anew for each.
        """
        targets = {name: _empty(end - begin, columns[0].rows.shape[1]) for name, columns in self._columns.items()}
        return partial(self._fill, targets, begin, end)

    def _fill(self, targets: Mapping[str, Tensor], begin: int, end: int) -> Batch:
        runs = int(np.count_nonzero(self._breaks[begin + 1 : end])) + 1
        batch = {}
        for name, target in targets.items():
            first = self._columns[name][0]
            shape = (end - begin, *first.shape)
            if target.numel() == 0:
                batch[name] = torch.empty(shape, dtype=first.dtype)
                continue
            copy = self._by_runs if target.numel() >= runs * LARGE else self._by_address
            copy(name, begin, end, target.numpy())
            batch[name] = target.view(first.dtype).reshape(shape)
        return batch

    def _by_runs(self, name: str, begin: int, end: int, target: Array) -> None:
        """Rows that follow each other are copied at once."""
        starts = np.append(begin, begin + 1 + np.flatnonzero(self._breaks[begin + 1 : end]))
        counts = np.diff(starts, append=end)
        runs = zip(self._which[starts].tolist(), self._rows[starts].tolist(), counts.tolist(), strict=True)
        np.concatenate([self._columns[name][shard].rows[row : row + count] for shard, row, count in runs], out=target)

    def _by_address(self, name: str, begin: int, end: int, target: Array) -> None:
        """Rows that lie apart are gathered."""
        self._spans[name].gather(self._which[begin:end], self._rows[begin:end] * target.shape[1], target)


def _empty(count: int, width: int) -> Tensor:
    """Rows of bytes: in a worker process of a DataLoader in shared memory, where they would be copied to otherwise."""
    if get_worker_info() is None:
        # NumPy asks for huge pages, without which new memory takes as long to get as to fill.
        return torch.from_numpy(np.empty((count, width), np.uint8))
    storage = torch.UntypedStorage._new_shared(count * width)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (count, width))
