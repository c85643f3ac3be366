"""What a dataset, a checkpoint or a file consists of: by the manifest where that tells, else by headers."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import Column, Manifest

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


@dataclass(frozen=True)
class Inspection:
    """What was found. Of a dataset in batches, whose shards all have its columns, no tensors are listed."""

    contents: Contents
    tensors: tuple[Tensor, ...]

    @property
    def bytes(self) -> int:
        return self.contents.bytes

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.contents.manifest.columns if self.contents.manifest else ()

    @property
    def dtypes(self) -> list[DtypeTotal]:
        """The largest first."""
        totals: dict[str, list[int]] = {}
        for tensor in self.tensors:
            total = totals.setdefault(tensor.dtype, [0, 0, 0])
            for at, value in enumerate((1, math.prod(tensor.shape), tensor.bytes)):
                total[at] += value
        found = (DtypeTotal(dtype, *total) for dtype, total in totals.items())
        return sorted(found, key=lambda total: (-total.bytes, total.dtype))

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        contents = self.contents
        return {
            "location": contents.location,
            "kind": contents.kind,
            "bytes": self.bytes,
            **(_of(contents.manifest) if contents.manifest else {}),
            "files": [
                {
                    "file": shard.file,
                    "bytes": contents.length(shard),
                    **({} if shard.samples is None else {"samples": shard.samples}),
                }
                for shard in contents.shards
            ],
            "dtypes": [vars(total) for total in self.dtypes],
            "tensors": [{**vars(tensor), "shape": list(tensor.shape)} for tensor in self.tensors],
        }


def _of(manifest: Manifest) -> dict[str, Any]:
    columns = [
        {"name": column.name, "dtype": column.dtype, "shape": None if column.shape is None else list(column.shape)}
        for column in manifest.columns
    ]
    return {
        "mode": manifest.mode,
        "samples": manifest.samples,
        "commit_id": manifest.commit_id,
        "options": dict(manifest.options),
        "columns": columns,
    }


def inspect(contents: Contents) -> Inspection:
    """Look closer. Reads headers, many at a time, but where a dataset in batches has its columns in the manifest.

    Raises `InvalidFileError` or `FileNotFoundError` for a file whose header is needed.
    """
    if contents.manifest and contents.manifest.mode == "batch":
        return Inspection(contents, ())
    with ThreadPoolExecutor(_THREADS) as threads:
        headers = list(threads.map(contents.header, contents.shards))
    tensors = (
        Tensor(tensor.name, shard.file, tensor.dtype, tensor.shape, tensor.bytes)
        for shard, header in zip(contents.shards, headers, strict=True)
        for tensor in header.tensors
    )
    return Inspection(contents, tuple(tensors))
