"""Datasets with an index, made without Spark."""

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from safetensors.numpy import save_file

from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.header import Header, read_header
from safetensors_spark._files.manifest import INDEX, MANIFEST, Column, Kind
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype

SCHEMA = pa.schema(
    [
        ("tensor_key", pa.string()),
        ("file_name", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("dtype", pa.string()),
        ("data_start", pa.int64()),
        ("data_end", pa.int64()),
    ]
)

Entry = dict[str, Any]


def new_part() -> str:
    """The name of another part of an index."""
    return f"_tensor_index-{uuid.uuid4()}.parquet"


def samples_by_three(folder: Path, values: Sequence[float]) -> "Handmade":
    """A dataset of samples `v`, three in a shard."""
    made = Handmade(folder, "batch")
    for begin in range(0, len(values), 3):
        made.shard(v=values[begin : begin + 3])
    made.commit()
    return made


class Handmade:
    """A dataset that grows by shards and index parts; `commit` writes its manifest."""

    def __init__(self, folder: Path, mode: str = "key_value") -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.mode = folder, mode
        self.shards: list[dict[str, Any]] = []
        self.parts: list[dict[str, str]] = []

    def shard(self, **tensors: Sequence[float] | np.ndarray[Any, Any]) -> list[Entry]:
        """Writes a shard, of F32 but for arrays; its index entries, by key."""
        lengths = {key: len(values) - key.endswith(".offsets") for key, values in tensors.items()}
        ragged = {key.removesuffix(".offsets") for key in tensors if key.endswith(".offsets")}
        samples = (
            len(tensors) if self.mode == "key_value" else next(n for key, n in lengths.items() if key not in ragged)
        )
        self.save({key: np.asarray(values, _dtype(values)) for key, values in tensors.items()}, samples)
        return self.entries(-1)

    def rows(self, columns: Sequence[Column], rows: Mapping[str, Sequence[Any]], padding: int = 0) -> Path:
        """Writes a shard of these rows, by column, and of so many that only fill it up."""
        tensors: dict[str, Array] = {}
        for column in columns:
            tensors |= encoded(column, rows[column.name], padding)
        return self.save(tensors, len(next(iter(rows.values()))), kinds_of(columns))

    def save(self, tensors: Mapping[str, Array], samples: int, metadata: Mapping[str, str] | None = None) -> Path:
        """Writes a shard of these tensors."""
        path = self.folder / f"part-{len(self.shards):05}-{uuid.uuid4()}.safetensors"
        save_file(dict(tensors), path, dict(metadata) if metadata else None)
        with path.open("rb") as file:
            length, crc32c = checksum(file, lambda _: None)
        self.shards.append(
            {
                "file": path.name,
                "samples_count": samples,
                "bytes": length,
                "header_bytes": _header(path).data_start,
                "crc32c": crc32c,
            }
        )
        return path

    def entries(self, number: int) -> list[Entry]:
        """The index entries of a shard."""
        path = self.folder / self.shards[number]["file"]
        header = _header(path)
        return [
            {
                "tensor_key": tensor.name,
                "file_name": path.name,
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "data_start": header.data_start + tensor.begin,
                "data_end": header.data_start + tensor.end,
            }
            for tensor in sorted(header.tensors, key=lambda tensor: tensor.name)
        ]

    def part(self, entries: list[Entry], name: str = INDEX) -> None:
        """Writes a part of the index, in place of the one by that name."""
        commit = str(uuid.uuid4())
        metadata = {"safetensors.commit_id": commit, "safetensors.format_version": "1.1"}
        pq.write_table(pa.Table.from_pylist(entries, SCHEMA.with_metadata(metadata)), self.folder / name)
        self.parts = [part for part in self.parts if part["file"] != name] + [{"file": name, "commit_id": commit}]

    def commit(self, columns: Sequence[str | Column] = ("v",), kinds: Mapping[str, Kind] | None = None) -> None:
        """`kinds` are those of the names that are not fixed; their values have no dimensions."""
        others = {name: Column(name, None, (), kind) for name, kind in (kinds or {}).items()}
        named = [others.get(one) or Column(one, None, None) if isinstance(one, str) else one for one in columns]
        manifest = {
            "format_version": "2.0" if kinds_of(named) else "1.3",
            "safetensors_version": "1.0",
            "total_samples": sum(shard["samples_count"] for shard in self.shards),
            "total_bytes": sum(shard["bytes"] for shard in self.shards),
            "shards": self.shards,
            "commit_id": str(uuid.uuid4()),
            "index_parts": self.parts,
            "mode": self.mode,
            "options": {},
            "schema": [
                {"name": one.name, "dtype": one.dtype, "shape": None if one.shape is None else list(one.shape)}
                | ({} if one.kind == "fixed" else {"kind": one.kind})
                for one in named
            ],
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest))


def kinds_of(columns: Sequence[Column]) -> dict[str, str]:
    """What the metadata of a shard says of them."""
    kinds = {column.name: column.kind for column in columns if column.kind != "fixed"}
    return {"column_kinds": json.dumps(kinds, sort_keys=True, separators=(",", ":"))} if kinds else {}


def encoded(column: Column, rows: Sequence[Any], padding: int = 0) -> dict[str, Array]:
    """The tensors of a column: of strings, of bytes, or of what `numpy.array` takes."""
    dtype, shape = numpy_dtype(column.dtype or "U8"), tuple(column.shape or ())
    if not column.has_offsets:
        values = np.array([*rows, *[np.zeros(shape)] * padding], dtype).reshape(len(rows) + padding, *shape)
        return {column.name: values}
    if column.kind == "text":
        rows = [row.encode() for row in rows]
    if column.kind != "ragged":
        rows = [np.frombuffer(row, np.uint8) for row in rows]
    lengths = [*map(len, rows), *[0] * padding]
    values = np.concatenate([np.empty((0, *shape), dtype), *rows]).astype(dtype)
    return dict(zip(column.tensors, (values, np.cumsum([0, *lengths])), strict=True))


def _dtype(values: object) -> type[np.float32] | None:
    return None if isinstance(values, np.ndarray) else np.float32


def _header(path: Path) -> Header:
    content = path.read_bytes()
    return read_header(lambda start, end: content[start:end], len(content), path.name)
