"""The contents of a dataset, a checkpoint or a file: from the manifest if it lists them, otherwise from headers."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeVar, overload

import numpy as np

from safetensors_spark._errors import DamagedShardError, counted, printable
from safetensors_spark._files.column_kinds import columns_in, has_kinds, rows_tensor
from safetensors_spark._files.contents import Contents, Kind
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.header import Header
from safetensors_spark._files.look import look
from safetensors_spark._files.manifest import Column, Manifest, Shard
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark._files.tensors import TensorInfo, Tensors

_THREADS = 8

_T = TypeVar("_T")


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
    """The totals of a dtype."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


class _Tensors(Sequence[Tensor]):
    """The tensors of all files, made as they are requested: there may be millions."""

    def __init__(self, files: Sequence[tuple[str, Tensors]]) -> None:
        self.files = files
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
        file, tensors = self.files[which]
        return _tensor(file, tensors[at - self._ends[which] + len(tensors)])

    def __iter__(self) -> Iterator[Tensor]:
        return (_tensor(file, tensor) for file, tensors in self.files for tensor in tensors)

    def dtypes(self) -> Iterator[tuple[str, int, int, int]]:
        """A dtype, and how many tensors, elements and bytes it has: for each shape in each file."""
        for _, tensors in self.files:
            counts = np.bincount(tensors.kind_of, minlength=len(tensors.kinds)).tolist()
            for (dtype, shape), count in zip(tensors.kinds, counts, strict=True):
                elements = count * math.prod(shape)
                yield dtype, count, elements, elements * DTYPES[dtype] // 8


def _tensor(file: str, tensor: TensorInfo) -> Tensor:
    return Tensor(tensor.name, file, tensor.dtype, tensor.shape, tensor.bytes)


class Inspection:
    """The contents of a path.

    Attributes:
        location: the path or URL.
        kind: what it is.
        shards: the files, in the order of their rows or names.
        manifest: a dataset's.
        samples: the number of rows of a dataset, or of samples of a folder that `open_dataset` can open; else None.
        columns: the columns of these. A property that differs between rows is None.
        tensors: all tensors; of a dataset in batches, whose shards all have its columns, none are listed.
    """

    def __init__(
        self, contents: Contents, headers: Sequence[Header], parts: Mapping[str, Inspection] | None = None
    ) -> None:
        """`headers` are those of the shards; none where the manifest tells enough. `parts` are the contents'."""
        self.location: str = contents.location
        self.kind: Kind = contents.kind
        self.shards: tuple[Shard, ...] = contents.shards
        self.manifest: Manifest | None = contents.manifest
        self.samples: int | None = None
        self.columns: tuple[Column, ...] = ()
        if self.manifest:
            self.samples, self.columns = self.manifest.samples, self.manifest.columns
        elif self.kind == "folder" and (counts := _samples(headers)):
            self.samples, self.columns = sum(counts), _columns(headers)
            self.shards = tuple(replace(shard, samples=one) for shard, one in zip(self.shards, counts, strict=True))
        self._contents = contents
        tensors = ((shard.file, header.tensors) for shard, header in zip(self.shards, headers, strict=False))
        self._tensors = _Tensors(list(tensors))
        if parts:
            self._join(parts)

    def _join(self, parts: Mapping[str, Inspection]) -> None:
        below = [(path, shard) for path, part in parts.items() for shard in part.shards]
        self.shards = tuple(replace(shard, file=f"{path}/{shard.file}") for path, shard in below)
        self._tensors = _Tensors(
            [(f"{path}/{file}", tensors) for path, part in parts.items() for file, tensors in part._tensors.files]
        )
        counts = [part.samples for part in parts.values() if part.samples is not None]
        if len(counts) == len(parts) and not any(part._by_key for part in parts.values()):
            self.samples, self.columns = (
                sum(counts),
                (*_common(list(parts.values())), *self._contents.partition_columns),
            )

    @property
    def _by_key(self) -> bool:
        return self.manifest is not None and self.manifest.mode != "batch"

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self._tensors

    @property
    def bytes(self) -> int:
        """The total length of all existing shards."""
        return self._contents.bytes

    def length(self, shard: Shard) -> int | None:
        """The length of the shard as it was listed; None if it is missing."""
        return self._contents.length(shard)

    @property
    def dtypes(self) -> list[DtypeTotal]:
        """The totals of each dtype, the largest first."""
        totals: dict[str, list[int]] = {}
        for dtype, *counts in self._tensors.dtypes():
            totals[dtype] = [sum(pair) for pair in zip(totals.get(dtype, (0, 0, 0)), counts, strict=True)]
        found = (DtypeTotal(dtype, *total) for dtype, total in totals.items())
        return sorted(found, key=lambda total: (-total.bytes, total.dtype))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON types."""
        return {
            "location": self.location,
            "kind": self.kind,
            "bytes": self.bytes,
            **({} if self.samples is None else {"samples": self.samples, "columns": list(map(_column, self.columns))}),
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

    def __repr__(self) -> str:
        if self.samples is None or self._by_key:
            what = counted(len(self.tensors), "tensor")
        else:
            what = f"{counted(self.samples, 'sample')} of {counted(len(self.columns), 'column')}"
        kind = self.kind if self.kind == "partitions" else f"a {self.kind}"
        return printable(f"<Inspection {self.location}: {kind} of {counted(len(self.shards), 'file')}, {what}>")


def _of(manifest: Manifest) -> dict[str, Any]:
    return {"mode": manifest.mode, "commit_id": manifest.commit_id, "options": dict(manifest.options)}


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "dtype": column.dtype,
        "shape": None if column.shape is None else list(column.shape),
        **({} if column.kind == "fixed" else {"kind": column.kind}),
        **({} if column.type is None else {"type": column.type}),
    }


def _samples(files: Sequence[Header]) -> list[int] | None:
    """How many samples each file has; None where the files are no batches of the same columns."""
    names = set(files[0].tensors.names)
    if not all(len(one.tensors) == len(names) and set(one.tensors.names) == names for one in files):
        return None
    found = [count for count in map(_count, files) if count is not None]
    return found if len(found) == len(files) else None


def _count(file: Header) -> int | None:
    """How many samples the file has; None if its tensors do not agree in that."""
    try:
        ragged = [column for column in columns_in(file, "it") if column.has_offsets] if has_kinds(file) else []
        counts = {rows_tensor(file, column, "it")[1] for column in ragged}
    except DamagedShardError:
        return None
    others = set(file.tensors.names) - {name for column in ragged for name in column.tensors}
    shapes = [file.by_name[name].shape for name in others] if ragged else [shape for _, shape in file.tensors.kinds]
    counts |= {shape[0] if shape else -1 for shape in shapes}
    return next(iter(counts)) if len(counts) == 1 and -1 not in counts else None


def _columns(files: Sequence[Header]) -> tuple[Column, ...]:
    columns = []
    for column in columns_in(files[0], "it"):
        found = [file.by_name[column.name] for file in files]
        shapes = {one.shape[1:] for one in found if not column.has_offsets or one.shape[0]}
        columns.append(replace(column, dtype=_only({one.dtype for one in found}), shape=_only(shapes)))
    return tuple(columns)


def _common(parts: Sequence[Inspection]) -> Iterator[Column]:
    """The columns that all partitions have."""
    named = [{column.name: column for column in part.columns} for part in parts if part.columns]
    for name in named[0] if named else ():
        found = [columns[name] for columns in named if name in columns]
        if len(found) == len(named):
            yield replace(
                found[0], dtype=_only({one.dtype for one in found}), shape=_only({one.shape for one in found})
            )


def _only(values: set[_T]) -> _T | None:
    """The one that all agree in."""
    return next(iter(values)) if len(values) == 1 else None


def inspect(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Inspection:
    """Describe a dataset, a checkpoint, a folder of safetensors files, or one file.

    Args:
        path: a local path, or an fsspec URL.
        storage_options: for fsspec's file system.

    It reads the manifest, or the headers if the manifest does not list the tensors.

    Raises:
        FileNotFoundError: there is nothing, or a file is missing whose header is needed.
        InvalidManifestError, InvalidCheckpointError, InvalidFileError: a file is not valid.
    """
    contents = look(path, storage_options)
    with ThreadPoolExecutor(_THREADS) as threads:
        return _inspected(contents, threads)


def _inspected(contents: Contents, threads: ThreadPoolExecutor) -> Inspection:
    if contents.manifest and contents.manifest.mode == "batch":
        return Inspection(contents, ())
    if contents.parts:
        parts = {path: _inspected(part.contents, threads) for path, part in contents.parts.items()}
        return Inspection(contents, (), parts)
    return Inspection(contents, list(threads.map(contents.header, contents.shards)))
