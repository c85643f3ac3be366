"""The manifest as Python reads it: what its JSON schema allows, and an error that says what is wrong for the rest."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import safetensors_spark as sts
from safetensors_spark._files.manifest import (
    MANIFEST,
    Column,
    IndexPart,
    KeyBucket,
    Kind,
    Manifest,
    Shard,
    parse_manifest,
    read_manifest,
)
from safetensors_spark._files.manifest_writer import manifest_text
from safetensors_spark._files.storage import open_folder

SHARD = {
    "file": "part-00000-964f352a-dda7-43c7-a9c4-3624a16d0000.safetensors",
    "samples_count": 3,
    "bytes": 200,
    "header_bytes": 80,
    "crc32c": "733b914b",
}
PART = {"file": "_tensor_index.parquet", "commit_id": "c"}
COLUMN = {"name": "t", "dtype": "U8", "shape": []}
WHOLE: dict[str, Any] = {
    "format_version": "1.0",
    "safetensors_version": "1.0",
    "total_samples": 3,
    "total_bytes": 200,
    "shards": [SHARD],
    "commit_id": "c",
    "mode": "batch",
    "options": {"batch_size": "3"},
    "schema": [{"name": "v", "dtype": "F32", "shape": [2, 1]}, {"name": "w", "dtype": None, "shape": None}],
}


def _read(folder: Path, content: str) -> Manifest:
    (folder / MANIFEST).write_text(content)
    return read_manifest(open_folder(folder))


def test_what_it_says(tmp_path: Path) -> None:
    manifest = _read(tmp_path, json.dumps(WHOLE))
    assert manifest.shards == (Shard(str(SHARD["file"]), 200, 3, 80, "733b914b"),)
    assert manifest.columns == (Column("v", "F32", (2, 1)), Column("w", None, None))
    assert (manifest.samples, manifest.bytes, manifest.mode, manifest.options["batch_size"]) == (3, 200, "batch", "3")


def test_the_kinds_and_types_of_columns(tmp_path: Path) -> None:
    schema = [COLUMN | {"kind": "text", "type": "string"}, COLUMN | {"name": "f"}]
    manifest = _read(tmp_path, json.dumps(WHOLE | {"format_version": "2.0", "schema": schema}))
    assert manifest.columns == (Column("t", "U8", (), "text", "string"), Column("f", "U8", (), "fixed", None))


def _bucketed(number: int, buckets: int, bucket: int, **keys: str) -> dict[str, Any]:
    name = f"part-0000{number}-964f352a-dda7-43c7-a9c4-3624a16d0000.safetensors"
    return SHARD | {"file": name, "key_bucket": {"buckets": buckets, "bucket": bucket, **keys}}


def test_the_buckets_of_shards(tmp_path: Path) -> None:
    shards = [_bucketed(0, 2, 0), _bucketed(1, 2, 1, first_key="a", last_key="b")]
    manifest = _read(tmp_path, json.dumps(WHOLE | {"shards": shards}))
    assert [shard.key_bucket for shard in manifest.shards] == [KeyBucket(2, 0, None), KeyBucket(2, 1, ("a", "b"))]
    assert manifest.key_buckets == 2


@pytest.mark.parametrize("others", [[], [SHARD], [_bucketed(1, 3, 0)], [SHARD, _bucketed(1, 3, 0)]])
def test_shards_that_are_not_all_in_the_same_number_of_buckets(tmp_path: Path, others: list[dict[str, Any]]) -> None:
    manifest = _read(tmp_path, json.dumps(WHOLE | {"shards": [_bucketed(2, 2, 1), *others] if others else []}))
    assert manifest.key_buckets is None


def test_the_most_buckets_that_there_may_be(tmp_path: Path) -> None:
    most = 100_000
    manifest = _read(tmp_path, json.dumps(WHOLE | {"shards": [_bucketed(0, most, most - 1)]}))
    assert manifest.key_buckets == most
    with pytest.raises(sts.InvalidManifestError, match=f"buckets` is {most + 1}, expected less than {most + 1}"):
        _read(tmp_path, json.dumps(WHOLE | {"shards": [_bucketed(0, most + 1, 0)]}))


def test_a_shard_without_rows(tmp_path: Path) -> None:
    manifest = _read(tmp_path, json.dumps(WHOLE | {"shards": [SHARD | {"samples_count": 0, "bytes": 0}]}))
    assert (manifest.samples, manifest.bytes) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "shape", "sample", "tensors"),
    [
        ("fixed", (2, 1), (2, 1), ("v",)),
        ("fixed", None, None, ("v",)),
        ("ragged", (2,), (None, 2), ("v", "v.offsets")),
        ("text", (), (None,), ("v", "v.offsets")),
        ("binary", (), (None,), ("v", "v.offsets")),
        ("ragged", None, None, ("v", "v.offsets")),
    ],
)
def test_what_rows_and_shards_have_of_a_column(kind: Kind, shape: Any, sample: Any, tensors: tuple[str, ...]) -> None:
    column = Column("v", "U8", shape, kind)
    assert (column.sample_shape, column.tensors) == (sample, tensors)


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} has no dataset_manifest.json"):
        read_manifest(open_folder(tmp_path))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mode": "other"}, r"`mode` is `other`, expected batch\|key_value"),
        ({"format_version": "new"}, "its format version is `new`, expected MAJOR.MINOR"),
        ({"format_version": 1.0}, "`format_version` is 1.0, expected str"),
        ({"shards": {}}, "`shards` is {}, expected list"),
        ({"shards": [7]}, r"shards\[0\]\. is not an object"),
        ({"shards": [SHARD | {"bytes": -1}]}, r"`shards\[0\]\.bytes` is -1, expected a number from 0"),
        ({"shards": [SHARD | {"bytes": True}]}, r"`shards\[0\]\.bytes` is true, expected int"),
        ({"shards": [SHARD | {"crc32c": "xyz"}]}, r"`shards\[0\]\.crc32c` is `xyz`"),
        *(
            ({"shards": [SHARD, SHARD | {"file": name}]}, r"`shards\[1\]\.file` is .*, which is not the name of a file")
            for name in ("", "..", "../x.safetensors", "/etc/passwd", "a\\b", "a\0b")
        ),
        ({"shards": [SHARD, SHARD]}, f"it names the shard `{SHARD['file']}` twice"),
        *(
            ({"index_parts": [PART, PART | {"file": name}]}, rf"`index_parts\[1\]\.file` is `{name}`, expected _tensor")
            for name in ("", "../x", SHARD["file"], "_tensor_index-1.parquet", "_tensor_index.parquet2")
        ),
        ({"index_parts": [PART, PART]}, "it names the index part `_tensor_index.parquet` twice"),
        ({"schema": [{"name": "v", "shape": [2, -1]}]}, r"`schema\[0\]\.shape` is \[2, -1\], expected dimensions"),
        (
            {"shards": [SHARD | {"bytes": 1 << 63}]},
            r"`shards\[0\]\.bytes` is 9223372036854775808, expected a number from",
        ),
        ({"shards": [_bucketed(0, 2, 2)]}, r"`shards\[0\]\.key_bucket\.bucket` is 2, expected less than 2"),
        ({"shards": [_bucketed(0, 2, 1, first_key="a")]}, r"`shards\[0\]\.key_bucket\.last_key` is null, expected str"),
        ({"shards": [_bucketed(0, 2, 1, last_key="a")]}, r"`shards\[0\]\.key_bucket\.first_key` is null, expected str"),
        ({"shards": [SHARD | {"key_bucket": 2}]}, r"shards\[0\]\.key_bucket\. is not an object"),
        ({"commit_id": None}, "`commit_id` is null, expected str"),
        ({"schema": [COLUMN | {"kind": "stream"}]}, r"`schema\[0\]\.kind` is `stream`, expected fixed\|ragged\|text"),
        ({"schema": [COLUMN | {"kind": None}]}, r"`schema\[0\]\.kind` is null, expected str"),
        ({"key_place": 3}, "`key_place` is 3, expected less than 3"),
        ({"schema": [COLUMN | {"type": 7}]}, r"`schema\[0\]\.type` is 7, expected str"),
        (
            {"schema": [COLUMN | {"kind": "text"}], "mode": "key_value"},
            "column `t` is text, which only columns of batches are",
        ),
    ],
)
def test_what_cannot_be_relied_on(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(sts.InvalidManifestError, match=said):
        _read(tmp_path, json.dumps(WHOLE | changed))


def test_what_is_no_json(tmp_path: Path) -> None:
    with pytest.raises(sts.InvalidManifestError, match="it is not JSON"):
        _read(tmp_path, '{"shards": [')


@pytest.mark.parametrize("version", ["3.0", "10.0", "99.0", "0.9"])
def test_another_major_version_is_refused_before_anything_else_is_read(tmp_path: Path, version: str) -> None:
    said = f"{MANIFEST} has format version {version}, but this version of safetensors-spark reads 1.x and 2.x. Upgrade"
    with pytest.raises(sts.IncompatibleVersionError, match=said):
        _read(tmp_path, json.dumps({"format_version": version}))


def test_fields_of_a_newer_minor_version_are_ignored(tmp_path: Path) -> None:
    for version in ("1.7", "2.7"):
        newer = {"format_version": version, "later": {"a": 1}, "shards": [SHARD | {"later": 2}]}
        assert _read(tmp_path, json.dumps(WHOLE | newer)) == _read(tmp_path, json.dumps(WHOLE))


def test_the_text_that_is_written(tmp_path: Path) -> None:
    manifest = Manifest(
        "c",
        "key_value",
        {"name_col": "é", "dtype": "F16"},
        (Column("v", "F32", (2, 1), type="array<float>"), Column("w", None, None)),
        (
            Shard("a", 200, 3, 80, "733b914b", KeyBucket(2, 0, None)),
            Shard("b", 50, 1, 40, "00000000", KeyBucket(2, 1, ("k", "ö"))),
        ),
        (IndexPart("_tensor_index.parquet", "d"),),
        key_place=1,
    )
    text = manifest_text(manifest)
    assert text.decode() == TEXT
    assert parse_manifest(text, "name") == manifest


def test_the_version_that_is_written() -> None:
    empty = Manifest("c", "batch", {}, (), ())
    ragged = replace(empty, columns=(Column("v", "U8", (), "text"),))
    versions = [json.loads(manifest_text(one)) for one in (empty, ragged)]
    assert [one["format_version"] for one in versions] == ["1.3", "2.0"]
    assert [one["shards"] for one in versions] == [[], []]
    assert versions[1]["schema"] == [{"name": "v", "dtype": "U8", "shape": [], "kind": "text"}]
    assert "key_place" not in versions[0]


TEXT = """{
  "format_version" : "1.3",
  "safetensors_version" : "1.0",
  "total_samples" : 4,
  "total_bytes" : 250,
  "shards" : [
    {"file" : "a", "samples_count" : 3, "bytes" : 200, "header_bytes" : 80, "crc32c" : "733b914b", \
"key_bucket" : {"buckets" : 2, "bucket" : 0}},
    {"file" : "b", "samples_count" : 1, "bytes" : 50, "header_bytes" : 40, "crc32c" : "00000000", \
"key_bucket" : {"buckets" : 2, "bucket" : 1, "first_key" : "k", "last_key" : "ö"}}
  ],
  "commit_id" : "c",
  "mode" : "key_value",
  "key_place" : 1,
  "options" : {"dtype" : "F16", "name_col" : "é"},
  "schema" : [
    {"name" : "v", "dtype" : "F32", "shape" : [2, 1], "type" : "array<float>"},
    {"name" : "w", "dtype" : null, "shape" : null}
  ],
  "index_parts" : [
    {"file" : "_tensor_index.parquet", "commit_id" : "d"}
  ]
}"""
