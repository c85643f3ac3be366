"""Shards as maps of their files, and what to say where they are not what they were when the dataset was opened."""

from __future__ import annotations

from safetensors_spark._errors import DamagedShardError, DatasetChangedError, printable
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import Manifest, Shard, read_manifest
from safetensors_spark._files.storage import FileVersion
from safetensors_spark.dataset._cache import Downloads, Local
from safetensors_spark.dataset._mapped import Mapped

# So many shards of a dataset are kept. Most of their memory is the page cache's.
MAPS = 256


def map_file(contents: Contents, shard: Shard, files: Local | Downloads) -> Mapped:
    """The shard's bytes; it has the length that it should have."""
    try:
        found = files.map(shard)
    except FileNotFoundError:
        raise missing(contents, shard) from None
    check_length(contents, shard, len(found.data))
    check_version(contents, shard, found.version)
    return found


def check_version(contents: Contents, shard: Shard, version: FileVersion | str) -> None:
    """Raises `DatasetChangedError` if another file has taken the shard's place, where no manifest tells them apart."""
    if contents.versions.get(shard.file, version) != version:
        raise DatasetChangedError(
            f"{contents.folder.location}/{shard.file} has been replaced since {contents.location} was opened, or "
            "written to: open it again."
        )


def check_whole(contents: Contents, shard: Shard, found: Mapped) -> None:
    """Raises `DamagedShardError`, or `DatasetChangedError`, for a mapped shard that was truncated: see `Mapped`."""
    length = found.cut_to()
    if length is not None:
        raise changed(contents, shard) or DamagedShardError(
            f"{contents.folder.location}/{shard.file} has been truncated to {length} bytes of {len(found.data)} while "
            "it was in use: restore it, and open it again."
        )


def check_length(contents: Contents, shard: Shard, length: int) -> None:
    """Raises `DamagedShardError`, or `DatasetChangedError`, for a shard that has another length than it should have."""
    if length != shard.bytes:
        detail = f"{contents.folder.location}/{shard.file} has {length} bytes, expected {shard.bytes}."
        raise changed(contents, shard) or DamagedShardError(detail)


def missing(contents: Contents, shard: Shard) -> Exception:
    """What to say of a shard that does not exist."""
    what = (
        f"{contents.folder.location}/{shard.file} does not exist: the dataset has lost it. `safetensors-spark verify` "
        "reports what else is wrong."
    )
    return changed(contents, shard) or FileNotFoundError(printable(what))


def changed(contents: Contents, shard: Shard | None = None) -> DatasetChangedError | None:
    """What to say if the dataset is not the one that was opened; of partitions, the one that has the shard."""
    if shard and (part := contents.part(shard)):
        contents = part.contents
    manifest = contents.manifest
    if manifest is None:
        return None
    now: Manifest | None
    try:
        now = read_manifest(contents.folder)
    except FileNotFoundError:
        now = None
    if now is not None and now.commit_id == manifest.commit_id:
        return None
    return DatasetChangedError(
        f"{contents.location} has been {'written again' if now else 'deleted'} since it was opened, and its shards of "
        f"commit {manifest.commit_id} are gone: open it again."
    )
