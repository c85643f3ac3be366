"""What a path holds: the shards of a dataset, of a checkpoint, or of a folder of safetensors files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from safetensors_spark._errors import printable
from safetensors_spark._files.header import Header, read_header
from safetensors_spark._files.manifest import Column, Manifest, Shard
from safetensors_spark._files.storage import FileVersion, Folder

Kind = Literal["dataset", "checkpoint", "folder", "file", "partitions"]


@dataclass(frozen=True)
class Part:
    """A folder below one of partitions, such as `day=2026-11-21/hour=7`.

    Attributes:
        values: the bytes of its value of each partition column; None for a null.
    """

    contents: Contents
    values: Mapping[str, bytes | None]


@dataclass(frozen=True)
class Contents:
    """Shards, in the order of their rows or names.

    Attributes:
        names: the length of each file in the folder; of the one file, if the path names one.
        manifest: a dataset's.
        weights: a checkpoint's: the file of each tensor.
        versions: what tells each file from another one that takes its place, where no manifest does: see `pinned`.
        parts: the folders of partitions, by their paths in the folder. Names of shards begin with these paths.
        partition_columns: their columns.
    """

    folder: Folder
    kind: Kind
    shards: tuple[Shard, ...]
    names: Mapping[str, int]
    manifest: Manifest | None = None
    weights: Mapping[str, str] | None = None
    versions: Mapping[str, FileVersion | str] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)
    partition_columns: tuple[Column, ...] = ()

    @property
    def location(self) -> str:
        """The path or URL of the folder, or of the one file."""
        return f"{self.folder.location}/{self.shards[0].file}" if self.kind == "file" else self.folder.location

    @property
    def bytes(self) -> int:
        """The length of all shards that are there."""
        return sum(self.length(shard) or 0 for shard in self.shards)

    def length(self, shard: Shard) -> int | None:
        """The length of the shard as it was listed; None if it is missing."""
        return self.names.get(shard.file)

    def pinned(self) -> Contents:
        """The same with the versions of its files, for those who open them later."""
        if self.manifest:
            return self
        return replace(self, versions=self.folder.versions(one.file for one in self.shards if one.crc32c is None))

    def part(self, shard: Shard) -> Part | None:
        """The partition that has the shard; None if there are no partitions."""
        return self.parts.get(shard.file.rpartition("/")[0])

    def header(self, shard: Shard) -> Header:
        """Read the shard's header. Raises `InvalidFileError` or `FileNotFoundError`."""
        path, length = f"{self.folder.location}/{shard.file}", self.length(shard)
        if length is None:
            raise FileNotFoundError(printable(f"{path} does not exist"))
        return read_header(lambda start, end: self.folder.read(shard.file, start, end), length, path)
