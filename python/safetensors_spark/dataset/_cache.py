"""Remote shards on this machine's disk, within a limit, for all processes of the machine together."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from safetensors_spark._errors import DamagedShardError
from safetensors_spark._extras import require
from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import Folder, LocalFolder
from safetensors_spark.dataset._forks import Forked

_THREADS = 2


@dataclass(frozen=True)
class Cache:
    """A directory of whole files, of which those that were used longest ago go when they take more than `limit` bytes.

    A file takes its name when all of its bytes are there and are right. Until then its part is locked by the process
    that downloads it; what a killed one has left is overwritten, and never used.
    """

    directory: Path
    limit: int

    def open(self, key: str, download: Callable[[BinaryIO], None]) -> BinaryIO:
        """The file of that key, downloaded if it is not there. Open it stays whole, whoever makes room."""
        target = self.directory / key
        while (found := self._found(target) or self._made(target, download)) is None:
            pass
        return found

    def _found(self, target: Path) -> BinaryIO | None:
        try:
            os.utime(target)
            return target.open("rb")
        except FileNotFoundError:
            return None

    def _made(self, target: Path, download: Callable[[BinaryIO], None]) -> BinaryIO | None:
        """None where another process has made it meanwhile, or has made room for others."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._locked(target.with_suffix(".part"), target) as part:
            if part is None:
                return None
            part.truncate(0)
            download(part)
            part.flush()
            Path(part.name).replace(target)
            made = self._found(target)
            self._make_room(target)
            return made

    @contextmanager
    def _locked(self, path: Path, target: Path) -> Iterator[BinaryIO | None]:
        """The part, which no other process has; None where another one has made the file meanwhile."""
        while True:
            with path.open("ab") as part:
                fcntl.flock(part, fcntl.LOCK_EX)
                if target.exists():
                    if _is_at(part, path):
                        path.unlink()
                    yield None
                    return
                if _is_at(part, path):
                    yield part
                    return

    def _make_room(self, newest: Path) -> None:
        """Deletes files, but the newest. Who has mapped one keeps it."""
        found = []
        for entry in os.scandir(self.directory):
            # Other processes make room too.
            with suppress(FileNotFoundError):
                if not entry.name.endswith(".part"):
                    found.append((entry.stat(), entry.path))
        taken = sum(stat.st_size for stat, _ in found)
        for stat, path in sorted(found, key=lambda one: one[0].st_mtime_ns):
            if taken <= self.limit or path == str(newest):
                break
            Path(path).unlink(missing_ok=True)
            taken -= stat.st_size


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


class Local:
    """Shards that are on this machine already."""

    def __init__(self, folder: LocalFolder) -> None:
        self._folder = folder

    def open(self, shard: Shard) -> BinaryIO:
        return (self._folder.path / shard.file).open("rb")

    def prefetch(self, shards: Sequence[Shard]) -> None:
        pass


class Downloads(Forked):
    """Shards that are downloaded when they are needed, or before."""

    def __init__(self, folder: RemoteFolder, cache: Cache) -> None:
        require("remote", ("crc32c",))
        self._folder, self._cache = folder, cache
        super().__init__()

    def _begin(self) -> None:
        self._lock = Lock()
        self._running: dict[str, Future[BinaryIO]] = {}
        self._threads: ThreadPoolExecutor | None = None

    def open(self, shard: Shard) -> BinaryIO:
        """The shard, once it is there. Raises `FileNotFoundError`, or `DamagedShardError` for wrong bytes."""
        with self._lock:
            running = self._running.pop(shard.file, None)
        return self._get(shard) if running is None else running.result()

    def prefetch(self, shards: Sequence[Shard]) -> None:
        """Begins to download what will be needed next, and nothing else. What goes wrong is told when it is needed."""
        with self._lock:
            for name in self._running.keys() - {shard.file for shard in shards}:
                left = self._running.pop(name)
                left.cancel()
                left.add_done_callback(_close)
            self._threads = self._threads or ThreadPoolExecutor(_THREADS, "safetensors-spark-prefetch")
            for shard in shards:
                if shard.file not in self._running:
                    self._running[shard.file] = self._threads.submit(self._get, shard)

    def _get(self, shard: Shard) -> BinaryIO:
        return self._cache.open(self._key(shard), lambda target: self._download(shard, target))

    def _key(self, shard: Shard) -> str:
        """Another one where the shard's bytes are others."""
        version = shard.crc32c or self._folder.version(shard.file)
        where = f"{self._folder.location}/{shard.file} {shard.bytes} {version}"
        return hashlib.sha256(where.encode()).hexdigest()[:40]

    def _download(self, shard: Shard, target: BinaryIO) -> None:
        with self._folder.open(shard.file) as source:
            length, found = checksum(source, target.write)
        name = f"{self._folder.location}/{shard.file}"
        if length != shard.bytes:
            raise DamagedShardError(f"{name} has {length} bytes, expected {shard.bytes}.")
        if shard.crc32c and found != shard.crc32c:
            raise DamagedShardError(
                f"{name} has changed on its way or at its place: its CRC-32C is {found}, and the manifest says "
                f"{shard.crc32c}."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_cache": self._cache}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        super().__init__()


def _close(download: Future[BinaryIO]) -> None:
    if not download.cancelled() and download.exception() is None:
        download.result().close()


def default_directory() -> Path:
    """The user's folder for what can be fetched again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "safetensors-spark"


def fetcher(folder: Folder, cache: Cache) -> Local | Downloads:
    return Downloads(folder, cache) if isinstance(folder, RemoteFolder) else Local(folder)
