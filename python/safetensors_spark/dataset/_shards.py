"""The shards of a dataset: each is a file that is mapped when it is first needed, and columns that look at the map."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from safetensors_spark._errors import DamagedShardError, InvalidTensorError
from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.column_kinds import kinds_in, offsets_fault, rows_tensor
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.header import Header, read_header
from safetensors_spark._files.manifest import Column, Kind, Shard
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark._files.tensors import TensorInfo
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._maps import MAPS, check_whole, map_file
from safetensors_spark.dataset._ragged import Ragged
from safetensors_spark.dataset._recent import Recent

T = TypeVar("T")

# What is mapped of more bytes is not kept when it is not needed. To map it again takes a third of the time of copying
# it from the page cache; but of so many bytes the page cache seldom has all.
_MAPPED_BYTES = 4 << 30


@dataclass(frozen=True)
class ShardColumn:
    """A column of a mapped shard.

    Attributes:
        place: what errors call it: the shard and the column.
        shape: its first dimension counts samples, or values if there are offsets.
        data: the bytes.
        offsets: where each sample's values begin and the last one's end, checked; None if all are of one shape.
    """

    place: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    data: Array
    offsets: Array | None


# Makes of a column what a reader wants. Raises `InvalidTensorError` for a dtype that it does not have.
View = Callable[[ShardColumn], T]


@dataclass(frozen=True)
class OpenShard(Generic[T]):
    """A shard's columns, which keep its map.

    Attributes:
        check: raises `DamagedShardError`, or `DatasetChangedError`, if somebody has cut the file off: then what looks
            at the columns' bytes ends the process.
    """

    columns: Mapping[str, T]
    check: Callable[[], None]


class OpenShards(Generic[T]):
    """The shards' columns, mapped when they are needed. May be used from many threads, and sent to other processes."""

    def __init__(self, contents: Contents, columns: Sequence[Column], files: Local | Downloads, view: View[T]) -> None:
        self._contents = contents
        self._columns = columns
        self._files = files
        self._view = view
        self._open: Recent[OpenShard[T]] = Recent(MAPS)

    def columns(self, shard: Shard) -> Mapping[str, T]:
        """The columns of `open`, to be used at once."""
        return self.open(shard).columns

    def open(self, shard: Shard) -> OpenShard[T]:
        """The shard, which is whole now. Its samples must have been counted."""
        found = self._open.get(shard.file) or self._open.keep(shard.file, self._map(shard))
        found.check()
        return found

    def prefetch(self, shards: Sequence[Shard]) -> None:
        """Says which shards will be needed next."""
        self._files.prefetch([shard for shard in shards if shard.file not in self._open])

    def release(self, needed: Sequence[Shard]) -> None:
        """Lets other shards than these go when many bytes are mapped: all that was touched of them counts as memory of
        this process for as long as they are.
        """
        self._open.shrink(_MAPPED_BYTES, self._lengths.__getitem__, {shard.file for shard in needed})

    @cached_property
    def _lengths(self) -> dict[Hashable, int]:
        return {shard.file: shard.bytes or 0 for shard in self._contents.shards}

    def _map(self, shard: Shard) -> OpenShard[T]:
        name = f"{self._contents.folder.location}/{shard.file}"
        constants = self._constants(shard, name)
        if len(constants) == len(self._columns):
            return OpenShard(constants, _whole)
        file = map_file(self._contents, shard, self._files)
        mapped = file.data
        header = read_header(lambda start, end: mapped[start:end].tobytes(), len(mapped), name)
        if self._contents.manifest is None:
            self._check_kinds(kinds_in(header, name), name)
        columns = {
            column.name: constants[column.name]
            if column.name in constants
            else self._column(mapped, header, column, shard.samples or 0, name)
            for column in self._columns
        }
        return OpenShard(columns, partial(check_whole, self._contents, shard, file))

    def _constants(self, shard: Shard, file: str) -> dict[str, T]:
        """The columns that have one value in the whole shard, which its folder's name says."""
        part = self._contents.part(shard)
        if part is None:
            return {}
        return {
            column.name: self._view(constant(column, part.values[column.name], shard.samples or 0, file))
            for column in self._columns
            if column.name in part.values
        }

    def _check_kinds(self, found: Mapping[str, Kind], file: str) -> None:
        for column in self._columns:
            if column in self._contents.partition_columns:
                continue
            kind = found.get(column.name, "fixed")
            if kind != column.kind:
                raise InvalidTensorError(
                    f"{file}: column `{column.name}` is {kind}, and {column.kind} in the first file."
                )

    def _column(self, mapped: Array, header: Header, column: Column, samples: int, file: str) -> T:
        counted, rows = rows_tensor(header, column, file)
        if rows < samples:
            raise DamagedShardError(
                f"{file}: tensor `{counted.name}` is of shape {list(counted.shape)}, expected {samples} samples."
            )
        tensor, offsets = header.by_name[column.name], None
        # A shard may end in samples that only fill it up, which have no values if the column is ragged.
        count, shape = samples, tensor.shape[1:]
        if column.has_offsets:
            count = tensor.shape[0]
            offsets = _offsets(_bytes(mapped, header, counted), samples, count, f"{file}: tensor `{counted.name}`")
            if count == 0 and column.shape is not None:
                # Empty rows do not tell the shape of a value.
                shape = column.shape
        data = _bytes(mapped, header, tensor)[: tensor.bytes * count // max(1, tensor.shape[0])]
        place = f"{file}: column `{column.name}`"
        try:
            return self._view(ShardColumn(place, column.kind, tensor.dtype, (count, *shape), data, offsets))
        except (ValueError, OverflowError) as error:
            raise InvalidTensorError(f"{file}: tensor `{column.name}`: {error}") from None


def _whole() -> None:
    """Nothing of the file is read."""


def constant(column: Column, value: bytes | None, samples: int, file: str) -> ShardColumn:
    """A column with the same value in all samples, as if the file had it."""
    assert value is not None
    assert column.dtype is not None
    data, offsets = np.frombuffer(value * samples, np.uint8), None
    if column.has_offsets:
        offsets = np.arange(samples + 1, dtype=np.int64) * len(value)
    shape = (len(data),) if column.has_offsets else (samples,)
    return ShardColumn(f"{file}: column `{column.name}`", column.kind, column.dtype, shape, data, offsets)


def unlike(
    name: str, one: tuple[Shard, Any, Sequence[int]], other: tuple[Shard, Any, Sequence[int]]
) -> InvalidTensorError:
    """The error for a column of two shards with these dtypes and shapes of a sample."""
    samples = [f"of {dtype} {list(shape)} in {shard.file}" for shard, dtype, shape in (one, other)]
    return InvalidTensorError(
        f"column `{name:.200}` has samples {samples[0]} and {samples[1]}, which cannot be stacked: take them one by "
        "one, or leave the column out with `columns`."
    )


def _bytes(mapped: Array, header: Header, tensor: TensorInfo) -> Array:
    return mapped[header.data_start + tensor.begin : header.data_start + tensor.end]


def _offsets(data: Array, samples: int, values: int, place: str) -> Array:
    # Views of addresses that are not aligned are slow.
    offsets = np.require(data.view("<i8"), requirements="A")
    if fault := offsets_fault(offsets, samples, values):
        raise DamagedShardError(f"{place} {fault}.")
    return offsets[: samples + 1]


def as_array(column: ShardColumn) -> Array | Ragged:
    """A `View` as NumPy's array, or as rows of different lengths."""
    values = column.data.view(numpy_dtype(column.dtype)).reshape(column.shape)
    if column.offsets is None:
        return values
    return Ragged.of_column(values, column.offsets, column.kind, column.place)
