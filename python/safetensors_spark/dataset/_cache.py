"""The files of shards: those of this machine, and remote ones, which are downloaded to a cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import index
from pathlib import Path
from typing import Any

from safetensors_spark._errors import DamagedShardError, printable
from safetensors_spark._extras import import_now, require
from safetensors_spark._files.cache import Cache, default_directory
from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import Folder, LocalFolder
from safetensors_spark.dataset._ahead import Ahead
from safetensors_spark.dataset._mapped import Mapped, mapped

_LOGGER = logging.getLogger("safetensors_spark")


class Local:
    """Shards that are on this machine already."""

    def __init__(self, folder: LocalFolder) -> None:
        self._folder = folder

    def map(self, shard: Shard) -> Mapped:
        path = self._folder.path / shard.file
        # `open` refuses it too, but does not say that the dataset may be opened again.
        if path.exists() and not path.is_file():
            raise DamagedShardError(f"{path} is not a file any more. Restore it, or open the dataset again.")
        with self._folder.open(shard.file) as opened:
            return mapped(opened)

    def prefetch(self, shards: Sequence[Shard]) -> None:
        pass


class Downloads:
    """Shards that are downloaded when they are needed, or before."""

    def __init__(self, folder: RemoteFolder, cache: Cache) -> None:
        import_now("crc32c", "filelock")
        self._folder, self._cache = folder, cache
        self._ahead = Ahead(self._get)

    def map(self, shard: Shard) -> Mapped:
        """The shard, once it is there. Raises `FileNotFoundError`, or `DamagedShardError` for wrong bytes."""
        return self._ahead.take(shard)

    def prefetch(self, shards: Sequence[Shard]) -> None:
        """Begin to download what will be needed next, and nothing else. Errors are raised when it is needed."""
        self._ahead.begin(shards)

    def _get(self, shard: Shard) -> Mapped:
        """The shard out of the cache."""
        assert shard.bytes is not None
        version = shard.crc32c or self._folder.version(shard.file)
        download = partial(self._download, shard)
        with self._cache.open(
            self._folder.cached_as, shard.file, f"{shard.bytes} {version}", shard.bytes, download
        ) as opened:
            return replace(mapped(opened), version=version)

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
                f"{name} changed during the download or in the store: its CRC-32C is {found}, and the manifest says "
                f"{shard.crc32c}."
            )
        _LOGGER.info("downloaded %s: %.1f MB in %.1f s", printable(name), length / 1e6, seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        return Downloads, (self._folder, self._cache)


def fetcher(folder: Folder, cache_dir: str | os.PathLike[str] | None, cache_bytes: int) -> Local | Downloads:
    """What opens the folder's shards; remote ones are cached in the directory, by default the user's.

    Raises `TypeError` or `ValueError` for a limit that is not a number of bytes.
    """
    try:
        limit = index(cache_bytes)
    except TypeError:
        raise TypeError(f"cache_bytes is {cache_bytes!r}, expected a whole number of bytes, such as 50 << 30") from None
    if limit < 0:
        raise ValueError(f"cache_bytes is {limit}, expected 0 or more")
    if isinstance(folder, LocalFolder):
        return Local(folder)
    require("remote", ("filelock",))
    return Downloads(folder, Cache(Path(cache_dir) if cache_dir else default_directory(), limit))
