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
from safetensors_spark._files.manifest import INDEX, MANIFEST

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
        path = self.folder / f"part-{len(self.shards):05}-{uuid.uuid4()}.safetensors"
        save_file({key: np.asarray(values, _dtype(values)) for key, values in tensors.items()}, path)
        with path.open("rb") as file:
            length, crc32c = checksum(file, lambda _: None)
        lengths = {key: len(values) - key.endswith(".offsets") for key, values in tensors.items()}
        ragged = {key.removesuffix(".offsets") for key in tensors if key.endswith(".offsets")}
        samples = (
            len(tensors) if self.mode == "key_value" else next(n for key, n in lengths.items() if key not in ragged)
        )
        self.shards.append(
            {
                "file": path.name,
                "samples_count": samples,
                "bytes": length,
                "header_bytes": _header(path).data_start,
                "crc32c": crc32c,
            }
        )
        return self.entries(-1)

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

    def commit(self, columns: Sequence[str] = ("v",), kinds: Mapping[str, str] | None = None) -> None:
        """`kinds` are those of the columns that are not fixed; their values have no dimensions."""
        kinds = kinds or {}
        manifest = {
            "format_version": "2.0" if kinds else "1.2",
            "safetensors_version": "1.0",
            "total_samples": sum(shard["samples_count"] for shard in self.shards),
            "total_bytes": sum(shard["bytes"] for shard in self.shards),
            "shards": self.shards,
            "commit_id": str(uuid.uuid4()),
            "index_parts": self.parts,
            "mode": self.mode,
            "options": {},
            "schema": [
                {"name": name, "dtype": None, "shape": [], "kind": kinds[name]}
                if name in kinds
                else {"name": name, "dtype": None, "shape": None}
                for name in columns
            ],
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest))


def _dtype(values: object) -> type[np.float32] | None:
    return None if isinstance(values, np.ndarray) else np.float32


def _header(path: Path) -> Header:
    content = path.read_bytes()
    return read_header(lambda start, end: content[start:end], len(content), path.name)
