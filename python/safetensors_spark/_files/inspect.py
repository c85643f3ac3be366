"""What a dataset, a checkpoint or a file consists of: by the manifest where that tells, else by headers."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, overload

import numpy as np

from safetensors_spark._files.contents import Contents, Kind, look
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.manifest import Column, Manifest, Shard
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark._files.tensors import TensorInfo, Tensors

_THREADS = 8


@dataclass(frozen=True)
class Tensor:
    """A tensor, and the file that it is in."""

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class DtypeTotal:
    """What a dtype adds up to."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


class _Tensors(Sequence[Tensor]):
    """The tensors of all files, made as they are asked for: there may be millions."""

    def __init__(self, files: Sequence[tuple[str, Tensors]]) -> None:
        self._files = files
        self._ends = list(accumulate(len(tensors) for _, tensors in files))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, number: int) -> Tensor: ...
    @overload
    def __getitem__(self, number: slice) -> list[Tensor]: ...
    def __getitem__(self, number: int | slice) -> Tensor | list[Tensor]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        at = range(len(self))[number]
        which = bisect_right(self._ends, at)
        file, tensors = self._files[which]
        return _tensor(file, tensors[at - self._ends[which] + len(tensors)])

    def __iter__(self) -> Iterator[Tensor]:
        return (_tensor(file, tensor) for file, tensors in self._files for tensor in tensors)

    def dtypes(self) -> Iterator[tuple[str, int, int, int]]:
        """A dtype, and how many tensors, elements and bytes it has: for each shape in each file."""
        for _, tensors in self._files:
            counts = np.bincount(tensors.kind_of, minlength=len(tensors.kinds)).tolist()
            for (dtype, shape), count in zip(tensors.kinds, counts, strict=True):
                elements = count * math.prod(shape)
                yield dtype, count, elements, elements * DTYPES[dtype] // 8


def _tensor(file: str, tensor: TensorInfo) -> Tensor:
    return Tensor(tensor.name, file, tensor.dtype, tensor.shape, tensor.bytes)


class Inspection:
    """What a path holds.

    Attributes:
        location: the path or URL.
        kind: what it is.
        shards: the files, in the order of their rows or names.
        manifest: a dataset's.
        tensors: all tensors; of a dataset in batches, whose shards all have its columns, none are listed.
    """

    def __init__(self, contents: Contents, tensors: Sequence[tuple[str, Tensors]]) -> None:
        self.location: str = contents.location
        self.kind: Kind = contents.kind
        self.shards: tuple[Shard, ...] = contents.shards
        self.manifest: Manifest | None = contents.manifest
        self._contents = contents
        self._tensors = _Tensors(tensors)

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self._tensors

    @property
    def bytes(self) -> int:
        """The length of all shards that are there."""
        return self._contents.bytes

    def length(self, shard: Shard) -> int | None:
        """The length of the shard as it was listed; None if it is missing."""
        return self._contents.length(shard)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a dataset."""
        return self.manifest.columns if self.manifest else ()

    @property
    def dtypes(self) -> list[DtypeTotal]:
        """What each dtype of the tensors adds up to, the largest first."""
        totals: dict[str, list[int]] = {}
        for dtype, *counts in self._tensors.dtypes():
            totals[dtype] = [sum(pair) for pair in zip(totals.get(dtype, (0, 0, 0)), counts, strict=True)]
        found = (DtypeTotal(dtype, *total) for dtype, total in totals.items())
        return sorted(found, key=lambda total: (-total.bytes, total.dtype))

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "location": self.location,
            "kind": self.kind,
            "bytes": self.bytes,
            **(_of(self.manifest) if self.manifest else {}),
            "files": [
                {
                    "file": shard.file,
                    "bytes": self.length(shard),
                    **({} if shard.samples is None else {"samples": shard.samples}),
                }
                for shard in self.shards
            ],
            "dtypes": [vars(total) for total in self.dtypes],
            "tensors": [{**vars(tensor), "shape": list(tensor.shape)} for tensor in self.tensors],
        }


def _of(manifest: Manifest) -> dict[str, Any]:
    columns = [
        {
            "name": column.name,
            "dtype": column.dtype,
            "shape": None if column.shape is None else list(column.shape),
            **({} if column.kind == "fixed" else {"kind": column.kind}),
            **({} if column.type is None else {"type": column.type}),
        }
        for column in manifest.columns
    ]
    return {
        "mode": manifest.mode,
        "samples": manifest.samples,
        "commit_id": manifest.commit_id,
        "options": dict(manifest.options),
        "columns": columns,
    }


def inspect(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Inspection:
    """Look at a dataset, a checkpoint, a folder of safetensors files, or one file.

    Args:
        path: a local path, or a URL of fsspec.
        storage_options: for fsspec's file system.

    It reads the manifest, or the headers where that does not list the tensors.

    Raises:
        FileNotFoundError: there is nothing, or a file is missing whose header is needed.
        InvalidManifestError, InvalidCheckpointError, InvalidFileError: a file is not valid.
    """
    contents = look(path, storage_options)
    if contents.manifest and contents.manifest.mode == "batch":
        return Inspection(contents, ())
    with ThreadPoolExecutor(_THREADS) as threads:
        headers = threads.map(contents.header, contents.shards)
        return Inspection(
            contents, [(one.file, header.tensors) for one, header in zip(contents.shards, headers, strict=True)]
        )
