"""Samples of mapped shards, copied once, into tensors that their consumer owns."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from safetensors_spark._errors import InvalidTensorError
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

# So many bytes take longer to copy than it takes Python to say so. Rows that are gathered are smaller, so that NumPy
# can count the bytes of an array of them over all of an address space.
_LARGE = 64 << 10


@dataclass(frozen=True)
class Column:
    """A tensor of a mapped shard: a row of bytes for each sample, of which the address of the first is known."""

    rows: Array
    address: int
    dtype: torch.dtype
    shape: tuple[int, ...]


def as_column(dtype: str, shape: tuple[int, ...], data: Array) -> Column:
    """A `View` of a shard's tensor."""
    if dtype not in DTYPES:
        raise InvalidTensorError(f"{dtype} is no dtype of PyTorch {torch.__version__}.")
    if dtype == "F4":
        shape = _pairs(shape)
    rows = data.reshape(shape[0], -1) if len(data) else np.empty((shape[0], 0), np.uint8)
    return Column(rows, rows.__array_interface__["data"][0], DTYPES[dtype], shape[1:])


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

    def take(self, numbers: Array) -> Batch:
        """The samples of these numbers, one or more, stacked in their order."""
        which, rows = self._samples.locate(numbers)
        needed, place = np.unique(which, return_inverse=True)
        # It keeps the maps while their bytes are copied by address.
        shards = [self._shards.columns(self._samples.parts[number]) for number in needed]
        return {name: _stacked([shard[name] for shard in shards], place, rows, name) for name in self._samples.columns}

    def prefetch(self, parts: Sequence[Part]) -> None:
        """Says which shards will be needed next."""
        self._shards.prefetch(parts)


def _stacked(columns: Sequence[Column], which: Array, rows: Array, name: str) -> Tensor:
    first = columns[0]
    for column in columns:
        if (column.dtype, column.shape) != (first.dtype, first.shape):
            raise InvalidTensorError(
                f"column `{name}` has samples of {first.dtype} {list(first.shape)} in one shard and of {column.dtype} "
                f"{list(column.shape)} in another, which cannot be stacked: take them one by one."
            )
    width = first.rows.shape[1]
    shape = (len(rows), *first.shape)
    if width == 0:
        return torch.empty(shape, dtype=first.dtype)
    begins = np.flatnonzero((np.diff(rows, prepend=-2) != 1) | (np.diff(which, prepend=-1) != 0))
    if len(rows) * width >= len(begins) * _LARGE:
        found = _copied(columns, which, rows, begins)
    else:
        found = _gathered(columns, which, rows, width)
    return found.view(first.dtype).reshape(shape)


def _copied(columns: Sequence[Column], which: Array, rows: Array, begins: Array) -> Tensor:
    """Rows that follow each other in a shard are copied at once."""
    ends = np.append(begins[1:], len(rows))
    runs = zip(which[begins].tolist(), rows[begins].tolist(), (ends - begins).tolist(), strict=True)
    blocks = [columns[number].rows[row : row + count] for number, row, count in runs]
    target = _empty(len(rows), blocks[0].shape[1])
    np.concatenate(blocks, out=target.numpy())
    return target


def _gathered(columns: Sequence[Column], which: Array, rows: Array, width: int) -> Tensor:
    """All rows in one call of NumPy, as rows of an array over the span of memory that has them all.

    Not all of the span is mapped: of that array nothing may be touched but these rows.
    """
    addresses = np.array([column.address for column in columns])[which] + rows * width
    low = int(addresses.min())
    span = int(addresses.max()) - low + width
    memory = memoryview((ctypes.c_uint8 * span).from_address(low))
    found = np.ndarray((span - width + 1, width), np.uint8, memory, strides=(1, 1))[addresses - low]
    if get_worker_info() is None:
        return torch.from_numpy(found)
    target = _empty(len(rows), width)
    target.numpy()[:] = found
    return target


def _empty(count: int, width: int) -> Tensor:
    """Rows of bytes: in a worker process of a DataLoader in shared memory, where they would be copied to otherwise."""
    if get_worker_info() is None:
        # NumPy asks for huge pages, without which new memory takes as long to get as to fill.
        return torch.from_numpy(np.empty((count, width), np.uint8))
    storage = torch.UntypedStorage._new_shared(count * width)
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (count, width))
