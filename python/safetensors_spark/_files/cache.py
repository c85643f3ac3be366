"""Shards that were downloaded, on the disk of this machine, for all of its processes and users."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from errno import EACCES
from pathlib import Path
from stat import S_IMODE
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._extras import require

ENVIRONMENT = "SAFETENSORS_SPARK_CACHE"

_PARTS, _LOCKS = ".parts", ".locks"
# Characters of a name: Windows takes paths of 260.
_LONGEST = 80
# Room is made when this process has downloaded one in so many parts of the limit: it takes long with many files.
_SHARE = 100


# Names that the cache makes: the key, and for a shard its name.
_PART = re.compile(r"[0-9a-f]{20}")
_MADE = re.compile(r"[0-9a-f]{20}-")


def default_directory() -> Path:
    """The directory that the environment variable names; else one in the user's cache directory."""
    if given := os.environ.get(ENVIRONMENT):
        return Path(given).expanduser()
    require("remote", ("platformdirs",))
    import platformdirs

    return Path(platformdirs.user_cache_dir("safetensors-spark", appauthor=False))


@dataclass(frozen=True)
class Cached:
    """A shard in the cache. `used` is when it was last opened, in seconds since 1970."""

    dataset: str
    path: Path
    bytes: int
    used: float


@dataclass(frozen=True)
class Cache:
    """A directory of shards. Those used longest ago are deleted when all together have more than `limit` bytes.

    A shard gets its name when all of its bytes are on the disk. Until then it is a part, which one process writes while
    it has a lock; a part without a lock is of a process that died. Whoever may write to the directory may use the
    cache: what is made in it has its permissions.
    """

    directory: Path
    limit: int
    # Bytes that this process has downloaded since it made room; at first it is not known what is there.
    _came: list[int] = field(default_factory=lambda: [1 << 62], repr=False, compare=False)

    def open(self, dataset: str, name: str, version: str, length: int, download: Callable[[Path], None]) -> BinaryIO:
        """The shard, which is downloaded if it does not exist. It stays whole while it is open or mapped.

        Args:
            dataset: its location, without a revision.
            name: the shard's file.
            version: another one where the shard has other bytes.
            length: the shard's. A file of another length was damaged here, and is downloaded again.
            download: writes all of the shard's bytes to a file, or raises.
        """
        key = hashlib.sha256(f"{dataset}/{name} {version}".encode()).hexdigest()[:20]
        target = self.directory / _plain(dataset) / f"{key}-{_plain(name)}"
        while (found := _found(target, length) or self._made(key, target, length, download)) is None:
            pass
        return found

    def shards(self) -> list[Cached]:
        """What is there; first what was used longest ago."""
        found = []
        for directory in self.directory.iterdir() if self.directory.exists() else ():
            if directory.name in (_PARTS, _LOCKS) or not directory.is_dir():
                continue
            dataset = unquote(directory.name)
            for entry in os.scandir(directory):
                # The directory may have other files. These are never deleted.
                if not (_MADE.match(entry.name) and entry.is_file(follow_symlinks=False)):
                    continue
                # Other processes delete files.
                with suppress(FileNotFoundError):
                    stat = entry.stat()
                    found.append(Cached(dataset, Path(entry.path), stat.st_size, stat.st_mtime))
        return sorted(found, key=lambda one: one.used)

    def make_room(self, limit: int, newest: Path | None = None) -> None:
        """Delete parts of dead processes, and shards until all together have `limit` bytes.

        The newest stays, and what is being made.
        """
        from filelock import Timeout

        shards = self.shards()
        taken = sum(one.bytes for one in shards) + self._parts()
        for one in shards:
            if taken <= limit:
                return
            # Not even Windows deletes a file that is open, nor can a user delete another one's in some directories.
            with suppress(PermissionError, Timeout):
                if one.path != newest:
                    # Who has made a shard opens it under its lock: without it, the shard would be downloaded again.
                    with self._lock(one.path.name, 0):
                        one.path.unlink(missing_ok=True)
                    taken -= one.bytes

    def _made(self, key: str, target: Path, length: int, download: Callable[[Path], None]) -> BinaryIO | None:
        """None where another process has already deleted it to make room."""
        self._make_directories(target.parent, self.directory / _PARTS, self.directory / _LOCKS)
        with self._lock(key):
            # Another process may have made it meanwhile.
            if found := _found(target, length):
                return found
            self._write(key, target, download)
            made = _found(target, length)
        self._came[0] += length
        if self._came[0] * _SHARE >= self.limit:
            self._came[0] = 0
            self.make_room(self.limit, target)
        return made

    def _write(self, key: str, target: Path, download: Callable[[Path], None]) -> None:
        number, name = tempfile.mkstemp(dir=self.directory / _PARTS, prefix=key)
        os.close(number)
        part = Path(name)
        try:
            download(part)
            # Else a name may stay after a power failure, and no bytes.
            with part.open("rb+") as written:
                os.fsync(written.fileno())
            part.chmod(self._mode & 0o666)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _parts(self) -> int:
        """The bytes of parts that are being written. Others are deleted."""
        from filelock import Timeout

        taken = 0
        for part in self.directory.glob(f"{_PARTS}/*"):
            if not _PART.match(part.name):
                continue
            with suppress(FileNotFoundError, PermissionError):
                taken += part.stat().st_size
                with suppress(Timeout), self._lock(part.name, 0):
                    size = part.stat().st_size
                    part.unlink()
                    taken -= size
        return taken

    def _lock(self, key: str, timeout: float = -1) -> AbstractContextManager[Any]:
        """One of 256 locks."""
        from filelock import FileLock

        return FileLock(self.directory / _LOCKS / key[:2], timeout, mode=self._mode & 0o666)

    @property
    def _mode(self) -> int:
        return S_IMODE(self.directory.stat().st_mode)

    def _make_directories(self, *paths: Path) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for path in paths:
                with suppress(FileExistsError):
                    path.mkdir()
                    path.chmod(self._mode)
                if not os.access(path, os.W_OK):
                    raise PermissionError(EACCES, "it may not be written to")
        except OSError as error:
            raise SafetensorsSparkError(
                f"the cache {self.directory} cannot be used ({error.strerror}): give another directory as `cache_dir`, "
                f"or in the environment variable {ENVIRONMENT}."
            ) from None


def _plain(name: str) -> str:
    """As a file's name in any file system, which still tells what it is."""
    return quote(name, safe="")[-_LONGEST:]


def _found(path: Path, length: int) -> BinaryIO | None:
    """The file if it has that length, which now counts as used."""
    try:
        opened = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return None
    if os.fstat(opened.fileno()).st_size != length:
        opened.close()
        return None
    # Another user's file, one in a file system that is read-only, or one that was deleted meanwhile.
    with suppress(OSError):
        os.utime(path)
    return opened
