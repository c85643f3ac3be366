"""The shards of a dataset: each is a file that is mapped when it is first needed, and columns that look at the map."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from safetensors_spark._errors import DamagedShardError, InvalidTensorError
from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.header import read_header
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark._files.tensors import TensorInfo
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._maps import MAPS, check_whole, map_file
from safetensors_spark.dataset._recent import Recent

T = TypeVar("T")

# What is mapped of more bytes is not kept when it is not needed. To map it again takes a third of the time of copying
# it from the page cache; but of so many bytes the page cache seldom has all.
_MAPPED_BYTES = 4 << 30

# Makes of a dtype's name, a shape of which the first dimension counts samples, and their bytes, what a reader wants.
# Raises `InvalidTensorError` for a dtype that it does not have.
View = Callable[[str, tuple[int, ...], Array], T]


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

    def __init__(self, contents: Contents, columns: Sequence[str], files: Local | Downloads, view: View[T]) -> None:
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
        file = map_file(self._contents, shard, self._files)
        mapped = file.data
        header = read_header(lambda start, end: mapped[start:end].tobytes(), len(mapped), name)
        columns = {
            column: self._column(
                mapped, header.data_start, header.by_name.get(column), column, shard.samples or 0, name
            )
            for column in self._columns
        }
        return OpenShard(columns, partial(check_whole, self._contents, shard, file))

    def _column(
        self, mapped: Array, data_start: int, tensor: TensorInfo | None, column: str, samples: int, file: str
    ) -> T:
        if tensor is None:
            raise DamagedShardError(f"{file} has no tensor `{column}`, which other shards have.")
        if not tensor.shape or tensor.shape[0] < samples:
            raise DamagedShardError(
                f"{file}: tensor `{column}` is of shape {list(tensor.shape)}, expected {samples} samples."
            )
        # A shard may end in samples that only fill it up.
        length = tensor.bytes * samples // tensor.shape[0]
        begin = data_start + tensor.begin
        data = mapped[begin : begin + length]
        try:
            return self._view(tensor.dtype, (samples, *tensor.shape[1:]), data)
        except (ValueError, OverflowError) as error:
            raise InvalidTensorError(f"{file}: tensor `{column}`: {error}") from None


def unlike(
    name: str, one: tuple[Shard, Any, Sequence[int]], other: tuple[Shard, Any, Sequence[int]]
) -> InvalidTensorError:
    """The error for a column of two shards with these dtypes and shapes of a sample."""
    samples = [f"of {dtype} {list(shape)} in {shard.file}" for shard, dtype, shape in (one, other)]
    return InvalidTensorError(
        f"column `{name:.200}` has samples {samples[0]} and {samples[1]}, which cannot be stacked: take them one by "
        "one, or leave the column out with `columns`."
    )


def as_array(dtype: str, shape: tuple[int, ...], data: Array) -> Array:
    """A `View` as NumPy's array."""
    return data.view(numpy_dtype(dtype)).reshape(shape)
