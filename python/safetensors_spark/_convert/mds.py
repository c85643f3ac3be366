"""MosaicML's MDS: `index.json`, and shards of samples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._convert.compression import COMPRESSIONS, decompressed
from safetensors_spark._convert.source import Part, Rows, Source, reading
from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.numpy_dtypes import Array

_BYTES = 32 << 20
# Offsets in a shard have 32 bits.
_SHARD_BYTES = 1 << 32
_TEXT, _RAW = ("str", "json"), ("bytes", "jpeg", "jpg", "png", "jpegarray")
_NUMBERS = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
)  # fmt: skip


@dataclass(frozen=True)
class _Shard(Part):
    path: Path
    # Name, encoding, and size if all cells have one.
    cells: tuple[tuple[str, str, int | None], ...]
    columns: tuple[str, ...] | None
    # What the index says of it; `size` is without compression.
    samples: int
    compression: str | None

    def rows(self) -> Iterator[Rows]:
        with reading(self.path):
            first = 0
            for samples in self._samples():
                yield Rows(self.path, first, {name: [sample[name] for sample in samples] for name in samples[0]})
                first += len(samples)

    def _samples(self) -> Iterator[list[dict[str, Any]]]:
        content = self._content()
        count = int(content[:4].view("<u4")[0])
        if (count, len(content)) != (self.samples, self.size):
            raise ValueError(
                f"it has {count} samples and {len(content)} bytes, and index.json says {self.samples} and {self.size}"
            )
        offsets = content[4 : 4 * (count + 2)].view("<u4").tolist()
        if offsets != sorted(offsets) or offsets[0] < 4 * (count + 2) or offsets[-1] != len(content):
            raise ValueError("the offsets of its samples are not in order, or do not end with the file")
        waiting: list[dict[str, Any]] = []
        size = 0
        for start, end in pairwise(offsets):
            waiting.append(self._sample(content[start:end].tobytes()))
            size += end - start
            if size >= _BYTES:
                yield waiting
                waiting, size = [], 0
        if waiting:
            yield waiting

    def _content(self) -> Array:
        if self.compression is None:
            return np.memmap(self.path, np.uint8, "r")
        content = decompressed(self.path.read_bytes(), self.compression, self.size, str(self.path))
        return np.frombuffer(content, np.uint8)

    def _sample(self, content: bytes) -> dict[str, Any]:
        varying = sum(size is None for _, _, size in self.cells)
        lengths = iter(np.frombuffer(content, "<u4", varying).tolist())
        at, sample = 4 * varying, {}
        for name, encoding, size in self.cells:
            length = next(lengths) if size is None else size
            if self.columns is None or name in self.columns:
                sample[name] = _value(name, encoding, content[at : at + length])
            at += length
        if at != len(content):
            raise ValueError(f"a sample has {len(content)} bytes, and its cells have {at}")
        return sample


def _value(name: str, encoding: str, content: bytes) -> Any:
    kind, *details = encoding.split(":")
    if kind in _TEXT:
        return content.decode()
    if kind in _RAW:
        return content
    if kind == "int":
        return int(np.frombuffer(content, "<i8")[0])
    if kind in _NUMBERS:
        return np.frombuffer(content, np.dtype(kind).newbyteorder("<"))[0]
    if kind == "ndarray" and len(details) == 2:
        # A dimension of -1 would be any.
        return np.frombuffer(content, details[0]).reshape([abs(int(dim)) for dim in details[1].split(",")])
    raise InvalidWriteError(
        f"Column `{name}` has the encoding `{encoding}` of MDS, which is not read. Leave it out with `--columns`."
    )


@dataclass(frozen=True)
class MdsSource(Source):
    shards: tuple[_Shard, ...]

    def parts(self, count: int) -> Sequence[Part]:
        return self.shards


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    index = path / "index.json"
    if not index.is_file():
        return None
    shards = json.loads(index.read_text()).get("shards", [])
    if not all(shard.get("format") == "mds" for shard in shards):
        return None
    return MdsSource(tuple(_shard(path, shard, columns) for shard in shards))


def _shard(folder: Path, shard: Mapping[str, Any], columns: tuple[str, ...] | None) -> _Shard:
    cells = tuple(zip(shard["column_names"], shard["column_encodings"], shard["column_sizes"], strict=True))
    path = folder / Path(shard["raw_data"]["basename"]).name
    samples, size = int(shard["samples"]), int(shard["raw_data"]["bytes"])
    if not 0 <= size < _SHARD_BYTES:
        raise InvalidWriteError(
            f"{folder / 'index.json'} says that {path.name} has {size:,} bytes, and shards have less than "
            "4 GiB. Copy it again."
        )
    if path.is_file():
        return _Shard(size, path, cells, columns, samples, None)
    if not shard.get("compression"):
        raise InvalidWriteError(f"{path} does not exist, though {folder / 'index.json'} names it.")
    # A level may follow, as in `zstd:7`.
    algorithm = str(shard["compression"]).partition(":")[0]
    if algorithm not in COMPRESSIONS:
        raise InvalidWriteError(
            f"{path} is compressed by {algorithm}, which is not read, only {', '.join(COMPRESSIONS)}. Decompress the "
            "shards first."
        )
    compressed = folder / Path(shard["zip_data"]["basename"]).name
    if not compressed.is_file() or compressed.stat().st_size != shard["zip_data"]["bytes"]:
        raise InvalidWriteError(
            f"{compressed} does not have the {shard['zip_data']['bytes']} bytes that {folder / 'index.json'} "
            "names. Copy it again."
        )
    return _Shard(size, compressed, cells, columns, samples, algorithm)
