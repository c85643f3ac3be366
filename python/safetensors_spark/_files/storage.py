"""Folders of files, on this machine or wherever fsspec reaches: their names, lengths, and parts of their bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from urllib.parse import unquote, urlsplit

from safetensors_spark._extras import require

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

StorageOptions = Mapping[str, Any]


def is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder: a manifest or an index must not lead a reader elsewhere."""
    return name not in ("", ".", "..") and not re.search(r"[/\\\0]", name)


def open_folder(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Folder:
    """The folder at a path of this machine, or at a URL of fsspec, which `storage_options` are for.

    Raises `MissingExtraError` for a URL where fsspec is not installed.
    """
    text = os.fspath(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    # `c:\data` is a path too.
    if len(parts.scheme) < 2:
        return LocalFolder(Path(text))
    require("remote", ("fsspec",))
    from fsspec.core import url_to_fs

    filesystem, root = url_to_fs(text, **(storage_options or {}))
    return RemoteFolder(filesystem, root)


class LocalFolder:
    """A folder of this machine. What is not there raises `FileNotFoundError`, as in one behind fsspec."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def location(self) -> str:
        """What errors and reports call it: an absolute path, or a URL."""
        return str(self.path)

    def names(self) -> dict[str, int]:
        """The files directly in it, and their lengths."""
        lengths = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                # A running writer deletes its lock and its temporary files.
                with suppress(FileNotFoundError):
                    if entry.is_file():
                        lengths[entry.name] = entry.stat().st_size
        return lengths

    def size(self, name: str) -> int:
        """How many bytes the file has."""
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The file's bytes from `start` to before `end`, fewer where it is shorter."""
        with (self.path / name).open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    def open(self, name: str) -> BinaryIO:
        """The file as one that may be read anywhere."""
        return (self.path / name).open("rb")


class RemoteFolder:
    """The same behind fsspec. Nothing is kept: each call asks the store."""

    def __init__(self, filesystem: AbstractFileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._process = os.getpid()
        self.root = root.rstrip("/")

    @property
    def filesystem(self) -> AbstractFileSystem:
        """One of this process: those that are asynchronous have a thread, which no fork takes along."""
        if self._process != os.getpid():
            old = self._filesystem
            self._filesystem = type(old)(*old.storage_args, **old.storage_options)
            self._process = os.getpid()
        return self._filesystem

    @property
    def location(self) -> str:
        return str(self.filesystem.unstrip_protocol(self.root))

    def names(self) -> dict[str, int]:
        found = self.filesystem.ls(self.root, detail=True, refresh=True)
        return {one["name"].rsplit("/", 1)[-1]: one["size"] for one in found if one["type"] == "file"}

    def size(self, name: str) -> int:
        return int(self.filesystem.size(self._path(name)))

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        content: bytes = self.filesystem.cat_file(self._path(name), start=start, end=end)
        return content

    def read_many(self, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """The same of several ranges, side by side where the file system can do so."""
        paths = [self._path(name) for name, _, _ in ranges]
        starts, ends = [start for _, start, _ in ranges], [end for _, _, end in ranges]
        found = self.filesystem.cat_ranges(paths, starts, ends, on_error="return")
        for (name, _, _), content in zip(ranges, found, strict=True):
            if isinstance(content, FileNotFoundError):
                raise FileNotFoundError(f"{self.location}/{name} is not there") from content
            if isinstance(content, BaseException):
                raise content
        return list(found)

    def open(self, name: str) -> BinaryIO:
        opened: BinaryIO = self.filesystem.open(self._path(name), "rb")
        return opened

    def version(self, name: str) -> str:
        """Another text where the store has other bytes by that name, as far as it tells."""
        return str(self.filesystem.ukey(self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


Folder: TypeAlias = LocalFolder | RemoteFolder
