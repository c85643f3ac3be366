"""Samples of mapped shards, copied once, into tensors that their consumer owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._gather import LARGE, Rows
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.torch._memory import empty

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
class MappedColumn:
    """A tensor of a mapped shard: a row of bytes for each sample."""

    rows: Array
    dtype: torch.dtype
    shape: tuple[int, ...]


def as_column(dtype: str, shape: tuple[int, ...], data: Array) -> MappedColumn:
    """A `View` of a shard's tensor."""
    if dtype not in DTYPES:
        raise InvalidTensorError(f"{dtype} is no dtype of PyTorch {torch.__version__}.")
    if dtype == "F4":
        shape = _pairs(shape)
    rows = data.reshape(shape[0], -1) if len(data) else np.empty((shape[0], 0), np.uint8)
    return MappedColumn(rows, DTYPES[dtype], shape[1:])


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
        self._open = samples.open(as_column)

    def choose(self, numbers: Array) -> Chosen:
        """The samples of these numbers, one or more."""
        which, rows = self._samples.locate(numbers)
        first = int(which.min())
        which -= first
        used = np.bincount(which) > 0
        shards = [self._open.columns(self._samples.shards[first + number]) for number in np.flatnonzero(used)]
        columns = {name: _same([shard[name] for shard in shards], name) for name in self._samples.columns}
        return Chosen(columns, (np.cumsum(used) - 1)[which], rows)

    def prefetch(self, shards: Sequence[Shard]) -> None:
        """Says which shards will be needed next, and no others."""
        self._open.release(shards)
        self._open.prefetch(shards)


def _same(columns: Sequence[MappedColumn], name: str) -> Sequence[MappedColumn]:
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

    def __init__(self, columns: Mapping[str, Sequence[MappedColumn]], which: Array, rows: Array) -> None:
        """`columns` are those of some shards, `which` of them has each sample, and `rows` are its numbers there."""
        self._columns = columns
        self._which, self._rows = which, rows
        # Rows that follow each other have one number.
        self._runs = np.cumsum((np.diff(rows, prepend=-2) != 1) | (np.diff(which, prepend=-1) != 0))
        self._small: dict[str, Rows] = {}

    def take(self, begin: int, end: int) -> Batch:
        """A piece of them, stacked."""
        return self.piece(begin, end)()

    def piece(self, begin: int, end: int) -> Callable[[], Batch]:
        """What copies a piece of them, in any thread.

        Memory for it is taken here: what threads take for themselves, C's library gives back and fetches anew for each.
        """
        runs = int(self._runs[end - 1] - self._runs[begin]) + 1
        batch, copies = {}, []
        for name, (column, *_) in self._columns.items():
            count, width = end - begin, column.rows.shape[1]
            target = empty(count, width)
            batch[name] = target.tensor(column.dtype, (count, *column.shape))
            if runs == 1 or count * width >= runs * LARGE:
                copies.append(partial(target.fill, self._runs_of(name, begin, end)))
            elif width:
                copies.append(partial(target.gather, self._rows_of(name), begin, end))
        return partial(_filled, batch, copies)

    def _runs_of(self, name: str, begin: int, end: int) -> list[Array]:
        """Rows that follow each other are copied at once."""
        starts = np.append(begin, begin + 1 + np.flatnonzero(np.diff(self._runs[begin:end])))
        counts = np.diff(starts, append=end)
        runs = zip(self._which[starts].tolist(), self._rows[starts].tolist(), counts.tolist(), strict=True)
        return [self._columns[name][shard].rows[row : row + count] for shard, row, count in runs]

    def _rows_of(self, name: str) -> Rows:
        """The column's bytes of all samples, which are few for each."""
        found = self._small.get(name)
        if found is None:
            shards = [shard.rows for shard in self._columns[name]]
            width = shards[0].shape[1]
            found = self._small[name] = Rows(shards, self._which, self._rows * width, width)
        return found


def _filled(batch: Batch, copies: Sequence[Callable[[], None]]) -> Batch:
    for copy in copies:
        copy()
    return batch
