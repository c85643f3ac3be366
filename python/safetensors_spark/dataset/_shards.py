"""The shards of a dataset: each is a file that is mapped when it is first needed, and arrays that look at the map."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from safetensors_spark._contents import Contents, File
from safetensors_spark._errors import DamagedShardError, InvalidTensorError
from safetensors_spark._header import TensorInfo, read_header
from safetensors_spark._numpy_dtypes import numpy_dtype
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._maps import MAPS, map_file
from safetensors_spark.dataset._recent import Recent

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Part:
    """A shard, and the numbers of its samples in the dataset: from `begin` to before `end`."""

    file: File
    begin: int
    end: int


class Shards:
    """The shards, opened as they are needed. May be used from many threads, and sent to other processes."""

    def __init__(self, contents: Contents, columns: Sequence[str], files: Local | Downloads) -> None:
        self._contents = contents
        self._columns = columns
        self._files = files
        self._open: Recent[Mapping[str, Array]] = Recent(MAPS)

    def arrays(self, part: Part) -> Mapping[str, Array]:
        """The shard's columns, of which the first dimension counts its samples."""
        return self._open.get(part.file.name, lambda: self._map(part))

    def prefetch(self, parts: Sequence[Part]) -> None:
        """Says which shards will be needed next."""
        self._files.prefetch([part.file for part in parts if part.file.name not in self._open])

    def _map(self, part: Part) -> Mapping[str, Array]:
        name = f"{self._contents.folder.location}/{part.file.name}"
        mapped = map_file(self._contents, part.file, self._files)
        header = read_header(lambda start, end: mapped[start:end], len(mapped), name)
        return {
            column: self._array(mapped, header.data_start, header.by_name.get(column), column, part, name)
            for column in self._columns
        }

    def _array(
        self, mapped: mmap.mmap, data_start: int, tensor: TensorInfo | None, column: str, part: Part, file: str
    ) -> Array:
        if tensor is None:
            raise DamagedShardError(f"{file} has no tensor `{column}`, which other shards have.")
        samples = part.end - part.begin
        if not tensor.shape or tensor.shape[0] < samples:
            raise DamagedShardError(
                f"{file}: tensor `{column}` is of shape {list(tensor.shape)}, expected {samples} samples."
            )
        try:
            dtype = numpy_dtype(tensor.dtype)
        except InvalidTensorError as error:
            raise InvalidTensorError(f"{file}: tensor `{column}`: {error}") from None
        elements = tensor.bytes // dtype.itemsize
        array = np.frombuffer(mapped, dtype, elements, data_start + tensor.begin) if elements else np.empty(0, dtype)
        return array.reshape(tensor.shape)[:samples]
