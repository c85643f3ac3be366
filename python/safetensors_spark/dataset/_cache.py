"""The files of shards: those of this machine, and remote ones, which are downloaded to a cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from safetensors_spark._errors import DamagedShardError, printable
from safetensors_spark._extras import require
from safetensors_spark._files.cache import Cache, default_directory
from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import Folder, LocalFolder
from safetensors_spark.dataset._forks import Forked

_LOGGER = logging.getLogger("safetensors_spark")

_THREADS = 2
# Shards that are downloaded, or about to be, and not yet used. Each may have an open file.
_MOST_AHEAD = 64


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
        """Begin to download what will be needed next, and nothing else. Errors are raised when it is needed."""
        shards = shards[:_MOST_AHEAD]
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
        """The shard out of the cache."""
        assert shard.bytes is not None
        version = f"{shard.bytes} {shard.crc32c or self._folder.version(shard.file)}"
        return self._cache.open(
            self._folder.location, shard.file, version, shard.bytes, lambda target: self._download(shard, target)
        )

    def _download(self, shard: Shard, target: Path) -> None:
        name, begun = f"{self._folder.location}/{shard.file}", time.monotonic()
        self._folder.download(shard.file, target)
        seconds = time.monotonic() - begun
        with target.open("rb") as source:
            length, found = checksum(source)
        if length != shard.bytes:
            raise DamagedShardError(f"{name} has {length} bytes, expected {shard.bytes}.")
        if shard.crc32c and found != shard.crc32c:
            raise DamagedShardError(
                f"{name} has changed on its way or at its place: its CRC-32C is {found}, and the manifest says "
                f"{shard.crc32c}."
            )
        _LOGGER.info("downloaded %s: %.1f MB in %.1f s", printable(name), length / 1e6, seconds)

    def __getstate__(self) -> dict[str, Any]:
        return {"_folder": self._folder, "_cache": self._cache}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        super().__init__()


def _close(download: Future[BinaryIO]) -> None:
    if not download.cancelled() and download.exception() is None:
        download.result().close()


def fetcher(folder: Folder, cache_dir: str | os.PathLike[str] | None, cache_bytes: int) -> Local | Downloads:
    """What opens the folder's shards; remote ones are cached in the directory, by default the user's."""
    if isinstance(folder, LocalFolder):
        return Local(folder)
    require("remote", ("crc32c", "filelock"))
    return Downloads(folder, Cache(Path(cache_dir) if cache_dir else default_directory(), cache_bytes))
