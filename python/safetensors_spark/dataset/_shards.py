"""The shards of a dataset: each is a file that is mapped when it is first needed, and columns that look at the map."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from safetensors_spark._errors import DamagedShardError, InvalidTensorError
from safetensors_spark._files.contents import Contents, File
from safetensors_spark._files.header import TensorInfo, read_header
from safetensors_spark._files.numpy_dtypes import numpy_dtype
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._maps import MAPS, Memory, map_file
from safetensors_spark.dataset._recent import Recent

Array = np.ndarray[Any, Any]
T = TypeVar("T")

# What is mapped of more bytes is not kept when it is not needed. To map it again takes a third of the time of copying
# it from the page cache; but of so many bytes the page cache seldom has all.
_MAPPED_BYTES = 4 << 30

# Makes of a dtype's name, a shape of which the first dimension counts samples, and their bytes, what a reader wants.
# Raises `InvalidTensorError` for a dtype that it does not have.
View = Callable[[str, tuple[int, ...], Array], T]


@dataclass(frozen=True)
class Part:
    """A shard, and the numbers of its samples in the dataset: from `begin` to before `end`."""

    file: File
    begin: int
    end: int


class Shards(Generic[T]):
    """The shards, opened as they are needed. May be used from many threads, and sent to other processes."""

    def __init__(self, contents: Contents, columns: Sequence[str], files: Local | Downloads, view: View[T]) -> None:
        self._contents = contents
        self._columns = columns
        self._files = files
        self._view = view
        self._open: Recent[Mapping[str, T]] = Recent(MAPS)

    def columns(self, part: Part) -> Mapping[str, T]:
        """The shard's columns, which keep its map."""
        return self._open.get(part.file.name) or self._open.keep(part.file.name, self._map(part))

    def prefetch(self, parts: Sequence[Part]) -> None:
        """Says which shards will be needed next."""
        self._files.prefetch([part.file for part in parts if part.file.name not in self._open])

    def release(self, needed: Sequence[Part]) -> None:
        """Lets other shards than these go when many bytes are mapped: all that was touched of them counts as memory of
        this process for as long as they are.
        """
        self._open.shrink(_MAPPED_BYTES, self._lengths.__getitem__, {part.file.name for part in needed})

    @cached_property
    def _lengths(self) -> dict[Hashable, int]:
        return {file.name: file.expected_bytes or 0 for file in self._contents.files}

    def _map(self, part: Part) -> Mapping[str, T]:
        name = f"{self._contents.folder.location}/{part.file.name}"
        mapped = map_file(self._contents, part.file, self._files)
        header = read_header(lambda start, end: mapped[start:end], len(mapped), name)
        return {
            column: self._column(mapped, header.data_start, header.by_name.get(column), column, part, name)
            for column in self._columns
        }

    def _column(
        self, mapped: Memory, data_start: int, tensor: TensorInfo | None, column: str, part: Part, file: str
    ) -> T:
        if tensor is None:
            raise DamagedShardError(f"{file} has no tensor `{column}`, which other shards have.")
        samples = part.end - part.begin
        if not tensor.shape or tensor.shape[0] < samples:
            raise DamagedShardError(
                f"{file}: tensor `{column}` is of shape {list(tensor.shape)}, expected {samples} samples."
            )
        # A shard may end in samples that only fill it up.
        length = tensor.bytes * samples // tensor.shape[0]
        data = np.frombuffer(mapped, np.uint8, length, data_start + tensor.begin) if length else np.empty(0, np.uint8)
        try:
            return self._view(tensor.dtype, (samples, *tensor.shape[1:]), data)
        except InvalidTensorError as error:
            raise InvalidTensorError(f"{file}: tensor `{column}`: {error}") from None


def as_array(dtype: str, shape: tuple[int, ...], data: Array) -> Array:
    """A `View` as NumPy's array."""
    return data.view(numpy_dtype(dtype)).reshape(shape)
