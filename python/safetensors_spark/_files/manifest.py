"""`dataset_manifest.json`: the shards that a dataset consists of. Its schema is format/dataset_manifest.schema.json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast, get_args

from safetensors_spark._errors import InvalidManifestError
from safetensors_spark._files.format_version import MANIFEST_MAJORS, MANIFEST_OF_FIXED, check_readable
from safetensors_spark._files.json_text import parse_json
from safetensors_spark._files.storage import Folder, is_plain_name

MANIFEST = "dataset_manifest.json"
INDEX = "_tensor_index.parquet"

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_INDEX_PART = rf"_tensor_index(-{_UUID})?\.parquet"

_MAX_BUCKETS = 100_000

Mode = Literal["batch", "key_value"]
Kind = Literal["fixed", "ragged", "text", "binary", "date", "timestamp", "timestamp_ntz"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class KeyBucket:
    """The bucket that all keys of a shard are in: `bucket` of `buckets`, from 0 on.

    Attributes:
        keys: the least and the greatest key of the shard, as UTF-8 bytes; None if they are long.
    """

    buckets: int
    bucket: int
    keys: tuple[str, str] | None


@dataclass(frozen=True)
class Shard:
    """A safetensors file of a dataset, a checkpoint or a folder.

    Attributes:
        file: its name in the folder.
        bytes: its length; None for a missing file that no manifest names.
        samples: its rows, without padding; None if they were not counted.
        header_bytes: where the byte buffer begins; None without a manifest.
        crc32c: the CRC-32C of the whole file, eight hexadecimal digits; None without a manifest.
        key_bucket: the bucket of its keys; None if the write made no buckets.
    """

    file: str
    bytes: int | None
    samples: int | None = None
    header_bytes: int | None = None
    crc32c: str | None = None
    key_bucket: KeyBucket | None = None


@dataclass(frozen=True)
class IndexPart:
    """A file of the index. Its footer has the same `commit_id`: a file of another commit is not this part."""

    file: str
    commit_id: str


@dataclass(frozen=True)
class Column:
    """A tensor column. What rows do not agree in, or nobody knows, is None.

    Attributes:
        shape: of one sample, or of one value if the kind is ragged, text or binary.
        kind: how rows became tensors, as `format/dataset.md` defines it.
        type: the Spark type of the column that was written.
    """

    name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    kind: Kind = "fixed"
    type: str | None = None

    @property
    def has_offsets(self) -> bool:
        """Whether the values of all rows are in one tensor, and a tensor of offsets says where each row begins."""
        return self.kind in ("ragged", "text", "binary")

    @property
    def sample_shape(self) -> tuple[int | None, ...] | None:
        """The shape of one sample, with None for a dimension that differs by row; None if it is not known."""
        return self.shape if self.shape is None or not self.has_offsets else (None, *self.shape)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of its tensors in a shard of a batch dataset."""
        return (self.name, f"{self.name}.offsets") if self.has_offsets else (self.name,)


@dataclass(frozen=True)
class Manifest:
    """What a dataset is made of: shards in row order, columns in the DataFrame's order, the last write's options.

    `index_parts` are the files of the index, if it has one: the largest is the first. `version` is that of the format.
    `key_place` is the number of columns before that of the keys, in the rows that were written; None if nobody knows.
    """

    commit_id: str
    mode: Mode
    options: Mapping[str, str]
    columns: tuple[Column, ...]
    shards: tuple[Shard, ...]
    index_parts: tuple[IndexPart, ...] = ()
    key_place: int | None = None
    # What of it a reader may ignore is ignored.
    version: str = field(default=MANIFEST_OF_FIXED, compare=False)

    @property
    def files(self) -> list[str]:
        """The names of all files of the dataset."""
        return [*(shard.file for shard in self.shards), *(part.file for part in self.index_parts)]

    @property
    def samples(self) -> int:
        """Rows of all shards: samples, or tensors by key."""
        return sum(shard.samples or 0 for shard in self.shards)

    @property
    def key_buckets(self) -> int | None:
        """How many buckets of keys the shards are in; None unless all are, with one number of buckets."""
        counts = {shard.key_bucket.buckets if shard.key_bucket else None for shard in self.shards}
        return counts.pop() if len(counts) == 1 else None

    @property
    def bytes(self) -> int:
        """The length of all shards."""
        return sum(shard.bytes or 0 for shard in self.shards)


def read_manifest(folder: Folder) -> Manifest:
    """The manifest of the dataset in `folder`.

    Raises:
        FileNotFoundError: there is none: the folder is not a dataset that Spark wrote.
        InvalidManifestError: it cannot be relied on.
        IncompatibleVersionError: its format is newer than this package.
    """
    try:
        content = folder.read(MANIFEST)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder.location} has no {MANIFEST}: it is not a dataset that was written by "
            '`df.write.format("safetensors")`, or the write did not end.'
        ) from None
    return parse_manifest(content, f"{folder.location}/{MANIFEST}")


def parse_manifest(content: bytes, name: str) -> Manifest:
    """What the JSON says; errors call it `name`. Raises as `read_manifest` does."""
    try:
        root = _Fields(parse_json(content), name, "")
    except ValueError as error:
        raise InvalidManifestError(name, f"it is not JSON ({error})") from None
    root.check_version("format_version")
    shards = tuple(map(_shard, root.items("shards")))
    index_parts = _index_parts(root)
    _check_unique("shard", (shard.file for shard in shards), name)
    _check_unique("index part", (part.file for part in index_parts), name)
    mode = cast(Mode, root.text("mode", "batch|key_value"))
    columns = tuple(map(_column, root.items("schema")))
    _check_kinds(mode, columns, name)
    return Manifest(
        commit_id=root.text("commit_id"),
        mode=mode,
        options={str(key): str(value) for key, value in root.value("options", dict).items()},
        columns=columns,
        shards=shards,
        index_parts=index_parts,
        key_place=root.count("key_place", below=len(columns) + 1) if root.has("key_place") else None,
        version=root.text("format_version"),
    )


def _check_unique(kind: str, files: Iterable[str], manifest: str) -> None:
    seen: set[str] = set()
    for file in files:
        if file in seen:
            raise InvalidManifestError(manifest, f"it names the {kind} `{file}` twice")
        seen.add(file)


def _check_kinds(mode: Mode, columns: Iterable[Column], manifest: str) -> None:
    for column in columns:
        if mode == "key_value" and column.kind != "fixed":
            raise InvalidManifestError(
                manifest, f"column `{column.name}` is {column.kind}, which only columns of batches are"
            )


def _shard(fields: _Fields) -> Shard:
    return Shard(
        file=fields.file_name("file"),
        bytes=fields.count("bytes"),
        samples=fields.count("samples_count"),
        header_bytes=fields.count("header_bytes"),
        crc32c=fields.text("crc32c", r"[0-9a-f]{8}"),
        key_bucket=fields.object("key_bucket", _key_bucket),
    )


def _key_bucket(fields: _Fields) -> KeyBucket:
    buckets = fields.count("buckets", below=_MAX_BUCKETS + 1)
    bucket = fields.count("bucket", below=buckets)
    recorded = fields.optional("first_key", str) is not None or fields.optional("last_key", str) is not None
    keys = (fields.text("first_key"), fields.text("last_key")) if recorded else None
    return KeyBucket(buckets, bucket, keys)


def _index_parts(root: _Fields) -> tuple[IndexPart, ...]:
    """In a manifest of version 1.0: the one file that there may be."""
    if root.optional("index_parts", list) is None:
        return (IndexPart(INDEX, root.text("commit_id")),)
    return tuple(IndexPart(one.text("file", _INDEX_PART), one.text("commit_id")) for one in root.items("index_parts"))


def _column(fields: _Fields) -> Column:
    return Column(
        name=fields.text("name"),
        dtype=fields.optional("dtype", str),
        shape=fields.dims("shape"),
        kind=cast(Kind, fields.text("kind", "|".join(get_args(Kind))) if fields.has("kind") else "fixed"),
        type=fields.optional("type", str),
    )


class _Fields:
    """A JSON object whose fields must be there, and of their type."""

    def __init__(self, value: Any, manifest: str, place: str) -> None:
        self._manifest, self._place = manifest, place
        if not isinstance(value, dict):
            raise self._refuse(f"{place or 'it'} is not an object")
        self._fields: dict[str, Any] = value

    def value(self, name: str, kind: type[_T]) -> _T:
        found = self._fields.get(name)
        # In Python a truth value is an integer.
        if not isinstance(found, kind) or isinstance(found, bool):
            raise self._refuse(f"`{self._place}{name}` is {json.dumps(found)[:100]}, expected {kind.__name__}")
        return found

    def has(self, name: str) -> bool:
        return name in self._fields

    def optional(self, name: str, kind: type[_T]) -> _T | None:
        return None if self._fields.get(name) is None else self.value(name, kind)

    def text(self, name: str, pattern: str = ".*") -> str:
        found = self.value(name, str)
        if not re.fullmatch(pattern, found, re.DOTALL):
            raise self._refuse(f"`{self._place}{name}` is `{found}`, expected {pattern}")
        return found

    def check_version(self, name: str) -> None:
        try:
            check_readable(self.text(name), self._manifest, MANIFEST_MAJORS)
        except ValueError as error:
            raise self._refuse(str(error)) from None

    def object(self, name: str, parse: Callable[[_Fields], _T]) -> _T | None:
        found = self._fields.get(name)
        return None if found is None else parse(_Fields(found, self._manifest, f"{self._place}{name}."))

    def count(self, name: str, below: int | None = None) -> int:
        found = self.value(name, int)
        if not _is_size(found):
            raise self._refuse(f"`{self._place}{name}` is {found}, expected a number from 0 to 2^63 - 1")
        if below is not None and found >= below:
            raise self._refuse(f"`{self._place}{name}` is {found}, expected less than {below}")
        return found

    def file_name(self, name: str) -> str:
        """A name in the folder itself: no path may lead out of it."""
        found = self.value(name, str)
        if not is_plain_name(found):
            raise self._refuse(f"`{self._place}{name}` is `{found}`, which is not the name of a file beside it")
        return found

    def dims(self, name: str) -> tuple[int, ...] | None:
        found = self.optional(name, list)
        if found is not None and not all(map(_is_size, found)):
            raise self._refuse(f"`{self._place}{name}` is {json.dumps(found)[:100]}, expected dimensions")
        return None if found is None else tuple(found)

    def items(self, name: str) -> list[_Fields]:
        found = self.value(name, list)
        return [_Fields(one, self._manifest, f"{name}[{at}].") for at, one in enumerate(found)]

    def _refuse(self, what: str) -> InvalidManifestError:
        return InvalidManifestError(self._manifest, what)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
