"""The shards of a dataset: each is a file that is mapped when it is first needed, and arrays that look at the map."""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from safetensors_spark._contents import Contents, File
from safetensors_spark._errors import DamagedShardError, DatasetChangedError, InvalidTensorError
from safetensors_spark._header import TensorInfo, read_header
from safetensors_spark._manifest import Manifest, read_manifest
from safetensors_spark._numpy_dtypes import numpy_dtype
from safetensors_spark.dataset._cache import Downloads, Local

Array = np.ndarray[Any, Any]

# So many maps are kept: what they have in memory is the page cache's, but counts as this process's while it is mapped.
_MAPS = 64


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
        self._begin()

    def _begin(self) -> None:
        self._open: OrderedDict[str, Mapping[str, Array]] = OrderedDict()
        self._lock = Lock()

    def arrays(self, part: Part) -> Mapping[str, Array]:
        """The shard's columns, of which the first dimension counts its samples."""
        with self._lock:
            found = self._open.get(part.file.name)
            if found is not None:
                self._open.move_to_end(part.file.name)
                return found
        mapped = self._map(part)
        with self._lock:
            self._open[part.file.name] = mapped
            while len(self._open) > _MAPS:
                self._open.popitem(last=False)
        return mapped

    def prefetch(self, parts: Sequence[Part]) -> None:
        """Says which shards will be needed next."""
        self._files.prefetch([part.file for part in parts if part.file.name not in self._open])

    def _map(self, part: Part) -> Mapping[str, Array]:
        name = f"{self._contents.folder.location}/{part.file.name}"
        try:
            path = self._files.path(part.file)
            with path.open("rb") as file:
                length = os.fstat(file.fileno()).st_size
                if length != part.file.expected_bytes:
                    detail = f"{name} has {length} bytes, expected {part.file.expected_bytes}."
                    raise self._changed() or DamagedShardError(detail)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise self._changed() or FileNotFoundError(
                f"{name} is not there: the dataset has lost it. `safetensors-spark verify` tells what else is wrong."
            ) from None
        header = read_header(lambda start, end: mapped[start:end], length, name)
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

    def _changed(self) -> DatasetChangedError | None:
        """What to say if the dataset is not the one that was opened."""
        manifest = self._contents.manifest
        if manifest is None:
            return None
        now: Manifest | None
        try:
            now = read_manifest(self._contents.folder)
        except FileNotFoundError:
            now = None
        if now is not None and now.commit_id == manifest.commit_id:
            return None
        return DatasetChangedError(
            f"{self._contents.location} has been {'written again' if now else 'deleted'} since it was opened, and its "
            f"shards of commit {manifest.commit_id} are gone: open it again."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the maps, which each process makes anew."""
        return {name: value for name, value in vars(self).items() if name not in ("_open", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()
