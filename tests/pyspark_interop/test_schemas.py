"""The schemas of `format/`, held against the official library and against what Spark writes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from pyspark.sql import SparkSession

from header_cases import file
from official import BITS, DTYPES, FORMAT, Tensor, verdicts
from spark_io import frame, tensors_frame, write


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FORMAT / name).read_text())
    return loaded


HEADER = schema("safetensors.schema.json")
MANIFEST = schema("dataset_manifest.schema.json")


def header(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    loaded: dict[str, Any] = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return loaded


def official_dtypes(folder: Path) -> list[str]:
    """The library's own list, which it gives when it refuses a dtype."""
    path = folder / "unknown.safetensors"
    path.write_bytes(file('{"a":{"dtype":"NONE","shape":[1],"data_offsets":[0,1]}}', b"x"))
    [verdict] = verdicts([path])
    [listed] = re.findall("expected one of (.*) at line", verdict.message)
    return re.findall("`(.*?)`", listed)


def test_dtypes_are_the_official_library_s_in_its_order(tmp_path: Path) -> None:
    official = official_dtypes(tmp_path)
    assert HEADER["$defs"]["dtype"]["enum"] == official
    assert MANIFEST["$defs"]["dtype"]["enum"] == official
    assert official == DTYPES


def test_bits_are_the_official_library_s(tmp_path: Path) -> None:
    paths = [tmp_path / f"{dtype}.safetensors" for dtype in DTYPES]
    for path, (dtype, bits) in zip(paths, BITS.items(), strict=True):
        tensor = {"dtype": dtype, "shape": [8], "data_offsets": [0, bits]}
        path.write_bytes(file(json.dumps({"a": tensor}), bytes(bits)))
    assert [verdict.refused for verdict in verdicts(paths)] == [None] * len(DTYPES)


@pytest.mark.short
def test_headers_that_spark_writes_are_valid(spark: SparkSession, tmp_path: Path) -> None:
    structs = [{dtype: Tensor(dtype, (8,), bytes(BITS[dtype])) for dtype in DTYPES}]
    for number, df in enumerate(
        (
            tensors_frame(spark, structs),
            frame(spark, "x array<float>, y array<bigint>", ([1.5], [2])),
            frame(spark, '`` array<int>, `a"\\\\b` array<int>, `é😀` array<int>', ([1], [2], [3])),
        )
    ):
        shard = write(df, tmp_path / str(number), batch_size=1).shard
        Draft202012Validator(HEADER).validate(header(shard))


HOSTILE_HEADERS: dict[str, Any] = {
    "unknown dtype": {"a": {"dtype": "F23", "shape": [1], "data_offsets": [0, 1]}},
    "dtype of the official pattern that no reader knows": {
        "a": {"dtype": "U128", "shape": [1], "data_offsets": [0, 16]}
    },
    "negative dimension": {"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}},
    "dimension past 64 bits": {"a": {"dtype": "U8", "shape": [2**64], "data_offsets": [0, 1]}},
    "one offset": {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0]}},
    "three offsets": {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 1]}},
    "no shape": {"a": {"dtype": "U8", "data_offsets": [0, 1]}},
    "another field": {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "stride": [1]}},
    "metadata that is no string": {"__metadata__": {"a": 1}},
    "list": [],
}


@pytest.mark.parametrize("case", HOSTILE_HEADERS)
def test_header_schema_refuses(case: str) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(HEADER).validate(HOSTILE_HEADERS[case])


SHARD: dict[str, Any] = {
    "file": "part-00000-550e8400-e29b-41d4-a716-446655440000.safetensors",
    "samples_count": 1,
    "bytes": 72,
    "header_bytes": 64,
    "crc32c": "e3069283",
}

PART = {"file": "_tensor_index.parquet", "commit_id": "550e8400-e29b-41d4-a716-446655440000"}

SOUND: dict[str, Any] = {
    "format_version": "2.0",
    "safetensors_version": "1.0",
    "total_samples": 1,
    "total_bytes": 72,
    "shards": [SHARD],
    "commit_id": "550e8400-e29b-41d4-a716-446655440000",
    "index_parts": [PART, PART | {"file": "_tensor_index-550e8400-e29b-41d4-a716-446655440000.parquet"}],
    "mode": "batch",
    "options": {"batch_size": "1"},
    "schema": [
        {"name": "x", "dtype": "F32", "shape": None, "type": "array<float>"},
        {"name": "y", "dtype": None, "shape": []},
        {"name": "z", "dtype": "U8", "shape": [], "kind": "text", "type": "string"},
    ],
}


def test_manifest_schema_takes_a_sound_manifest() -> None:
    Draft202012Validator(MANIFEST).validate(SOUND)


HOSTILE_MANIFESTS: dict[str, dict[str, Any]] = {
    "file that leaves the directory": {"shards": [SHARD | {"file": "../" + SHARD["file"]}]},
    "file by another name": {"shards": [SHARD | {"file": "model.safetensors"}]},
    "part of the index that leaves the directory": {"index_parts": [PART | {"file": "../" + PART["file"]}]},
    "part of the index without a commit": {"index_parts": [{"file": PART["file"]}]},
    "checksum in capitals": {"shards": [SHARD | {"crc32c": "E3069283"}]},
    "negative samples": {"shards": [SHARD | {"samples_count": -1}]},
    "byte buffer off the multiple of 8": {"shards": [SHARD | {"header_bytes": 63}]},
    "unknown mode": {"mode": "rows"},
    "option that is no string": {"options": {"batch_size": 1}},
    "unknown dtype": {"schema": [{"name": "x", "dtype": "float32", "shape": None}]},
    "unknown kind": {"schema": [{"name": "x", "dtype": "F32", "shape": None, "kind": "stream"}]},
    "unknown version": {"format_version": "3.0"},
    "commit that is no UUID": {"commit_id": "1"},
    "field that nobody knows": {"version": 2},
}


@pytest.mark.parametrize("case", HOSTILE_MANIFESTS)
def test_manifest_schema_refuses(case: str) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(MANIFEST).validate(SOUND | HOSTILE_MANIFESTS[case])
