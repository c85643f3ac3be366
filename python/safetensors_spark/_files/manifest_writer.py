"""The text of `dataset_manifest.json`: one line for each field and each shard, as Spark writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from safetensors_spark._files.format_version import MANIFEST_OF_FIXED, MANIFEST_OF_KINDS
from safetensors_spark._files.manifest import Column, Manifest, Shard


def manifest_text(manifest: Manifest) -> bytes:
    """The manifest as JSON in UTF-8, in the version that its columns need."""
    fields = ",\n".join(f"  {_json(name)} : {value}" for name, value in _fields(manifest))
    return f"{{\n{fields}\n}}".encode()


def _fields(manifest: Manifest) -> Iterator[tuple[str, str]]:
    has_kinds = any(column.kind != "fixed" for column in manifest.columns)
    yield "format_version", _json(MANIFEST_OF_KINDS if has_kinds else MANIFEST_OF_FIXED)
    yield "safetensors_version", _json("1.0")
    yield "total_samples", str(manifest.samples)
    yield "total_bytes", str(manifest.bytes)
    yield "shards", _lines([_shard(shard) for shard in manifest.shards])
    yield "commit_id", _json(manifest.commit_id)
    yield "mode", _json(manifest.mode)
    if manifest.key_place is not None:
        yield "key_place", str(manifest.key_place)
    yield "options", _json(dict(sorted(manifest.options.items())))
    yield "schema", _lines([_column(column) for column in manifest.columns])
    yield "index_parts", _lines([{"file": part.file, "commit_id": part.commit_id} for part in manifest.index_parts])


def _shard(shard: Shard) -> dict[str, Any]:
    fields = {
        "file": shard.file,
        "samples_count": shard.samples,
        "bytes": shard.bytes,
        "header_bytes": shard.header_bytes,
        "crc32c": shard.crc32c,
    }
    if shard.key_bucket is None:
        return fields
    bucket = shard.key_bucket
    keys = {} if bucket.keys is None else {"first_key": bucket.keys[0], "last_key": bucket.keys[1]}
    return fields | {"key_bucket": {"buckets": bucket.buckets, "bucket": bucket.bucket, **keys}}


def _column(column: Column) -> dict[str, Any]:
    shape = None if column.shape is None else list(column.shape)
    fields = {"name": column.name, "dtype": column.dtype, "shape": shape}
    kind = {} if column.kind == "fixed" else {"kind": column.kind}
    return fields | kind | ({} if column.type is None else {"type": column.type})


def _lines(items: list[dict[str, Any]]) -> str:
    return "[\n    " + ",\n    ".join(map(_json, items)) + "\n  ]" if items else "[ ]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", " : "))
