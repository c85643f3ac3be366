"""A folder behind fsspec."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from io import RawIOBase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from urllib.parse import quote, unquote

from safetensors_spark._errors import printable
from safetensors_spark._files.hub import at_commit
from safetensors_spark._files.retries import retried
from safetensors_spark._files.secrets import without_secrets

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# Files whose lengths are requested at the same time.
_THREADS = 16

# What file systems of fsspec call a checksum of a file, or a number of its content; and when it was written.
_TAGS = ("ETag", "etag", "e_tag", "content_md5", "md5Checksum", "blob_id", "sha", "CRC")
_TIMES = (
    "LastModified", "last_modified", "Last-Modified", "mtime", "modified", "modificationTime", "modifiedTime",
    "timeModified", "updated", "last_write_time", "modify", "date_time", "created",
)  # fmt: skip

# How `pinned` names a commit.
_COMMIT = re.compile(r"@[0-9a-f]{40}(?=/|$)")

_T = TypeVar("_T")


class RemoteFolder:
    """A folder behind fsspec. Nothing is cached: each call asks the store.

    Calls are repeated where that may help. What fails for good is an `OSError`, whose text has no secrets.
    """

    def __init__(self, filesystem: AbstractFileSystem, root: str, shown: str | None = None) -> None:
        """A folder that errors and reports call `shown`, where that is not its root."""
        protocol = filesystem.protocol
        self.is_http = "http" in (protocol if isinstance(protocol, tuple) else (protocol,))
        self._is_hub = protocol == "hf"
        self._filesystem = filesystem
        self._process = os.getpid()
        # A signature in the query is of all files.
        root, mark, query = root.partition("?") if self.is_http else (root, "", "")
        self._root, self._query = root.rstrip("/"), mark + query
        self._shown = self._root if shown is None else shown

    @property
    def filesystem(self) -> AbstractFileSystem:
        """One of this process: those that are asynchronous have a thread, which a fork does not copy."""
        if self._process != os.getpid():
            old = self._filesystem
            self._filesystem = type(old)(*old.storage_args, **old.storage_options)
            self._process = os.getpid()
        return self._filesystem

    @property
    def is_archive(self) -> bool:
        """Whether it is in a file such as a zip."""
        from fsspec.archive import AbstractArchiveFileSystem

        return isinstance(self.filesystem, AbstractArchiveFileSystem)

    @property
    def location(self) -> str:
        """The URL without secrets, for errors and reports."""
        return without_secrets(str(self.filesystem.unstrip_protocol(self._shown)))

    @property
    def cached_as(self) -> str:
        """What a cache calls it. All revisions on the Hub are one, whose shards are told apart by what is in them."""
        if not self._is_hub:
            return self.location
        return without_secrets(str(self.filesystem.unstrip_protocol(_COMMIT.sub("", self._root))))

    def folders(self) -> list[str]:
        """The names of the folders directly in it."""
        found = (one["name"].partition("?")[0] for one in self._listed() if one["type"] == "directory")
        names = (name.rstrip("/").rpartition("/")[2] for name in found)
        return [unquote(name) if self.is_http else name for name in names]

    def below(self, name: str) -> RemoteFolder:
        """The folder by this name in it."""
        return RemoteFolder(self.filesystem, self.path_of(name), f"{self._shown}/{name}")

    def pinned(self) -> RemoteFolder:
        """The folder as it is now. On the Hub that is a commit, which stays when its branch moves on."""
        if not self._is_hub:
            return self
        root = self.call("", lambda: at_commit(self.filesystem, self._root))
        return RemoteFolder(self.filesystem, root, self._shown)

    def names(self) -> dict[str, int]:
        """The files directly in it, and their lengths. An HTTP server tells them by a page of links, if at all."""
        found = self._listed()
        sizes = {one["name"].rsplit("/", 1)[-1]: one["size"] for one in found if one["type"] == "file"}
        return self.lengths(unquote(name.partition("?")[0]) for name in sizes) if self.is_http else sizes

    def lengths(self, names: Iterable[str]) -> dict[str, int]:
        """The lengths of those of these files that are there."""
        return self._of_each({name for name in names if name}, self.size)

    def is_file(self, name: str) -> bool:
        """Whether there is a file by this name."""
        try:
            return bool(self.call(name, lambda: self.filesystem.info(self.path_of(name)))["type"] == "file")
        except FileNotFoundError:
            return False

    def size(self, name: str) -> int:
        """How many bytes the file has."""
        length = self.call(name, lambda: self.filesystem.size(self.path_of(name)))
        if length is None:
            raise OSError(printable(f"{self.location}/{name}: the server does not report its length"))
        return int(length)

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The file's bytes from `start` to before `end`, fewer where it is shorter."""
        # The Hub's file system would read megabytes ahead.
        exact = {"cache_type": "none"} if self._is_hub else {}
        path = self.path_of(name)
        content = self.call(name, lambda: self.filesystem.cat_file(path, start=start or None, end=end, **exact))
        return _cut(content, start, end)

    def read_many(self, ranges: Sequence[tuple[str, int, int]]) -> list[bytes]:
        """The same of several ranges, side by side where the file system can do so."""
        if self._is_hub:
            with ThreadPoolExecutor(_THREADS) as threads:
                return list(threads.map(lambda one: self.read(*one), ranges))
        paths = [self.path_of(name) for name, _, _ in ranges]
        starts, ends = [start for _, start, _ in ranges], [end for _, _, end in ranges]
        found = self.call("", lambda: self.filesystem.cat_ranges(paths, starts, ends, on_error="return"))
        return [
            self.read(*one) if isinstance(content, BaseException) else _cut(content, *one[1:])
            for one, content in zip(ranges, found, strict=True)
        ]

    def open(self, name: str) -> BinaryIO:
        """The file as one that may be read anywhere."""
        return cast(BinaryIO, _RemoteFile(self, name))

    def download(self, name: str, target: Path) -> None:
        """Write the file's bytes to a local file."""
        self.call(name, lambda: self.filesystem.get_file(self.path_of(name), str(target)))

    def version(self, name: str) -> str:
        """Another text where the store has other bytes by that name, as far as it tells."""
        return version_of(self.call(name, lambda: self._about(name)))

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """The versions of those of these files that are there. Listings tell them in other words, if at all."""
        return self._of_each(names, self.version)

    def _listed(self) -> list[dict[str, Any]]:
        return cast(
            list[dict[str, Any]], self.call("", lambda: self.filesystem.ls(self.path_of(""), detail=True, refresh=True))
        )

    def _about(self, name: str) -> Mapping[str, Any]:
        # Some file systems remember what they have listed.
        self.filesystem.invalidate_cache(self.path_of(name))
        return cast(Mapping[str, Any], self.filesystem.info(self.path_of(name)))

    def path_of(self, name: str) -> str:
        """What the file system calls the file."""
        return f"{self._root}/{quote(name) if self.is_http else name}{self._query}"

    def _of_each(self, names: Iterable[str], ask: Callable[[str], _T]) -> dict[str, _T]:
        """What is asked of those of these files that are there, side by side."""

        def answer(name: str) -> list[tuple[str, _T]]:
            try:
                return [(name, ask(name))]
            except FileNotFoundError:
                return []

        with ThreadPoolExecutor(_THREADS) as threads:
            return dict(chain.from_iterable(threads.map(answer, sorted(names))))

    def call(self, name: str, call: Callable[[], _T], done: str = "read") -> _T:
        """What the call returns, repeated where that may help. Errors name the file, which cannot be `done`."""
        return retried(printable(f"{self.location}/{name}".rstrip("/")), call, done)


def version_of(about: Mapping[str, Any]) -> str:
    """What a store says of a file's content, or else of its time."""
    tags = [str(about[name]).strip('"') for name in _TAGS if about.get(name)]
    return (tags or [_time(about[name]) for name in _TIMES if about.get(name)] or [""])[0]


def _time(value: Any) -> str:
    # A file system may say it one way in a listing, and another way of one file.
    return str(value.timestamp() if isinstance(value, datetime) else value)


def _cut(content: bytes, start: int, end: int | None) -> bytes:
    """The range. HTTP servers that know no ranges send the whole file."""
    return content if end is None or len(content) <= end - start else content[start:end]


class _RemoteFile(RawIOBase):
    """A file of fsspec whose reads are repeated where that may help."""

    def __init__(self, folder: RemoteFolder, name: str) -> None:
        super().__init__()
        self._folder, self._name, self._at = folder, name, 0
        self._file: Any = folder.call(name, lambda: folder.filesystem.open(folder.path_of(name), "rb"))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset if whence == 0 else offset + (self._at if whence == 1 else self._folder.size(self._name))
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._folder.call(self._name, lambda: self._read(size))
        self._at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        """What `io.BufferedReader` asks for."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _read(self, size: int) -> bytes:
        if self._file.tell() != self._at:
            self._file.seek(self._at)
        return bytes(self._file.read(size))

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
