"""Where the samples of a dataset lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.column_kinds import columns_in, rows_tensor
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.header import Header
from safetensors_spark._files.manifest import Column, Kind, Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._order import Order, Places, Shuffle
from safetensors_spark.dataset._shards import OpenShards, T, View


class Samples:
    """The shards that have a dataset's samples, and the columns that are read of them.

    Attributes:
        contents: what the folder has.
        files: where the shards are, or are copied to.
        location: what errors call it.
        columns: the names of the columns.
        kinds: the kind of each.
        shards: those that have samples, in their order.
        begins: for each of them the number of its first sample.
    """

    # Whether a place is a batch of many samples.
    _exact = False

    def __init__(self, contents: Contents, columns: Sequence[Column], files: Local | Downloads) -> None:
        self.contents, self.files = contents, files
        self._place(contents.location, columns, tuple(_counted(contents)))

    def _place(self, location: str, columns: Sequence[Column], shards: tuple[Shard, ...]) -> None:
        self.location = location
        self._read = tuple(columns)
        self.columns = tuple(column.name for column in columns)
        self.kinds: Mapping[str, Kind] = {column.name: column.kind for column in columns}
        self.shards = shards
        ends = np.cumsum([0, *(shard.samples or 0 for shard in shards)], dtype=np.int64)
        self.begins, self._length = ends[:-1], int(ends[-1])

    def __len__(self) -> int:
        return self._length

    @property
    def places(self) -> int:
        """How many samples an epoch takes."""
        return len(self)

    def _order(self, shuffle: Shuffle | None, epoch: int) -> Places:
        """In which order the epoch takes the samples."""
        return Order(self.shards, shuffle, epoch)

    def _batch(self, numbers: Array, rank: int = 0, ranks: int = 1) -> tuple[int, Array]:
        """What a rank's batch takes of what an order took, which several ranks may share: the first place, and all."""
        return 0, numbers

    @property
    def fingerprint(self) -> str:
        """Tells these samples from those of other shards, or of shards of other lengths."""
        ends = accumulate(shard.samples or 0 for shard in self.shards)
        shards = [(shard.file, shard.bytes, end) for shard, end in zip(self.shards, ends, strict=True)]
        return hashlib.sha256(repr(shards).encode()).hexdigest()[:16]

    def number(self, number: Any) -> int:
        """The number of a sample, which may be counted from the end. Raises `IndexError` for what no sample has."""
        try:
            # To Python `True` is 1, and so it is to NumPy 1.26.
            if isinstance(number, bool | np.bool_):
                raise TypeError
            return range(len(self))[index(number)]
        except IndexError:
            raise self._error(number) from None
        except TypeError:
            raise TypeError(
                "samples are indexed by a number, a slice, a list or an array of numbers, a mask, or a column's name, "
                f"not {type(number).__name__}"
            ) from None

    def numbers(self, indices: Sequence[int] | Array) -> Array:
        """The same of several samples, or those where a mask is true."""
        given = np.asarray(indices)
        if given.ndim != 1:
            raise IndexError(f"the numbers of samples are an array of {given.ndim} dimensions, expected one")
        if given.dtype == bool:
            return self._masked(given)
        if len(given) and given.dtype.kind not in "iu":
            raise IndexError(
                f"the numbers of samples are of dtype {given.dtype}, expected integers, or a mask of booleans"
            )
        if len(given) and not (given.min() >= -len(self) and given.max() < len(self)):
            raise self._error(next(one for one in given.tolist() if not -len(self) <= one < len(self)))
        numbers = given.astype(np.int64)
        numbers[numbers < 0] += len(self)
        return numbers

    def _masked(self, mask: Array) -> Array:
        if len(mask) != len(self):
            raise IndexError(f"the mask has {len(mask)} elements, expected one for each of the {len(self)} samples")
        return np.flatnonzero(mask)

    def _error(self, number: Any) -> IndexError:
        there = f"samples are numbered 0 to {len(self) - 1}" if len(self) else "there are no samples"
        return IndexError(f"{there}, and {number} is asked for")

    def which(self, number: int) -> int:
        """The place in `shards` of the shard that has the sample."""
        return int(self.begins.searchsorted(number, side="right")) - 1

    def locate(self, numbers: Array) -> tuple[Array, Array]:
        """Of each sample the shard's place in `shards`, and its number in the shard."""
        which = self.begins.searchsorted(numbers, side="right") - 1
        return which, numbers - self.begins[which]

    def _header(self, shard: Shard) -> Header:
        """Read the shard's header. Raises `InvalidFileError` or `FileNotFoundError`."""
        return self._contents(shard).header(shard)

    def _contents(self, shard: Shard) -> Contents:
        """What the shard's folder has."""
        return self.contents

    def _batches(self, size: int) -> str:
        """What batches of so many are called."""
        return f"batches of {size:,} samples"

    def open(self, view: View[T]) -> OpenShards[T]:
        """The shards, with columns as the view makes them."""
        return OpenShards(self.contents, self._read, self.files, view)


def _counted(contents: Contents) -> Iterator[Shard]:
    """The shards that have samples, which are counted."""
    total = 0
    for shard in contents.shards:
        count = _samples(contents, shard) if shard.samples is None else shard.samples
        total += count
        if total >> 62:
            raise SafetensorsSparkError(f"{contents.location}: {shard.file} and those before have {total:,} samples.")
        if count:
            yield replace(shard, samples=count)


def _samples(contents: Contents, shard: Shard) -> int:
    """The samples of a shard that no manifest counts."""
    header, file = contents.header(shard), f"{contents.folder.location}/{shard.file}"
    found = (rows_tensor(header, column, file) for column in columns_in(header, file))
    counts = {rows: tensor.name for tensor, rows in found}
    if len(counts) != 1 or -1 in counts:
        shown = ", ".join(
            f"`{name:.100}` has {'none' if rows < 0 else rows}" for rows, name in list(counts.items())[:2]
        )
        raise SafetensorsSparkError(
            f"{file} is not a file of samples: its tensors must have the same first "
            f"dimension, but {shown or 'it has no tensors'}. If they are weights, open it with `open_store`."
        )
    return next(iter(counts))
