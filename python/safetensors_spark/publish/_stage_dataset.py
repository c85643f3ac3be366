"""`stage_dataset`: stages the files of one commit of a dataset for the syncer, the manifest last."""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from safetensors_spark._errors import DamagedShardError, DatasetChangedError, InvalidShardError
from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.format_version import check_writable
from safetensors_spark._files.manifest import MANIFEST, Manifest, parse_manifest
from safetensors_spark._files.storage import Folder, LocalFolder, open_folder
from safetensors_spark.publish._local_staging import explained
from safetensors_spark.publish._put_in_place import put_in_place
from safetensors_spark.publish._shard_schema import is_safe_run_id
from safetensors_spark.publish._sidecar import SUFFIX, Sidecar, new_sidecar, now, sidecar_of
from safetensors_spark.publish._staged import StagedShard, dataset_file, read_sidecar, staged, withdraw
from safetensors_spark.publish._staging import (
    FAILED_DIRNAME,
    FOLDERS,
    PENDING_DIRNAME,
    SYNCED_DIRNAME,
    Digest,
    Staging,
    digest,
    drafted,
    make_layout,
    open_staging,
)

_LOGGER = logging.getLogger("safetensors_spark")

# Each of them takes another commit.
_ATTEMPTS = 5

# A path in a repository: names without those that lead elsewhere.
_PREFIX = re.compile(r"(?!\.{0,2}(/|$))[^/\\\0]+(/(?!\.{0,2}(/|$))[^/\\\0]+)*")


class _File(NamedTuple):
    name: str
    role: str
    rows: int = 0
    crc32c: str | None = None


def stage_dataset(
    path: str | os.PathLike[str],
    *,
    staging_dir: str | os.PathLike[str],
    path_in_repo: str = "",
    run_id: str | None = None,
) -> list[StagedShard]:
    """Stage a dataset: shards and index, and last the manifest, which completes it.

    It stages one commit of the dataset, even if others write to it meanwhile. If the file system has hard links, shards
    take no space. If a call is killed, the next one completes it.

    Args:
        path: a dataset that Spark or `DatasetWriter` wrote: a local folder, or an fsspec URL.
        staging_dir: the staging directory, a path or an fsspec URL. It is created if necessary.
        path_in_repo: the folder of the repository that the dataset goes to; by default the repository's root.
        run_id: the run id in the sidecars; by default the commit of the dataset.

    Returns:
        The staged files, the manifest last.

    Raises:
        FileNotFoundError: there is no dataset.
        DamagedShardError: a shard is missing, or is not what the manifest says.
        DatasetChangedError: others write to the dataset faster than it can be staged.
        IncompatibleVersionError: a newer version of safetensors-spark has written the dataset.
        InvalidManifestError: its manifest is damaged.
        InvalidShardError: `path_in_repo` or `run_id` is not a name. It is a ValueError.
    """
    prefix = path_in_repo.strip("/")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise InvalidShardError(
            f"path_in_repo is `{path_in_repo}`, expected a folder of the repository, such as data/v1."
        )
    if run_id is not None and not is_safe_run_id(run_id):
        raise InvalidShardError(f"run_id is {run_id!r}, expected letters, digits, `.`, `_` and `-`.")
    folder, staging = open_folder(path), open_staging(staging_dir)
    content = read_manifest(folder)
    for _ in range(_ATTEMPTS):
        manifest = parse_manifest(content, f"{folder.location}/{MANIFEST}")
        check_writable(manifest.version, f"{folder.location}/{MANIFEST}")
        make_layout(staging)
        job = _Staged(folder, staging, manifest, prefix, run_id)
        try:
            return job.stage(content)
        except (FileNotFoundError, DamagedShardError) as error:
            withdraw(staging, job.id)
            content, before = read_manifest(folder), content
            if content == before:
                raise DamagedShardError(
                    f"{error}. `safetensors-spark verify {folder.location}` names all faults. Nothing of the dataset "
                    "is staged."
                ) from None
            _LOGGER.warning("%s was written meanwhile. Its new commit is staged.", folder.location)
    raise DatasetChangedError(
        f"{folder.location} was written {_ATTEMPTS} times while it was staged. Stage it when its writers have ended."
    )


def read_manifest(folder: Folder) -> bytes:
    """The manifest of a dataset. Raises `FileNotFoundError`, which says what a dataset is."""
    with suppress(FileNotFoundError):
        return folder.read(MANIFEST)
    raise FileNotFoundError(
        f"{folder.location} has no {MANIFEST}, which says what the dataset is. Name a folder that Spark or "
        "`safetensors_spark.dataset.DatasetWriter` has written. `safetensors-spark convert` makes one of other formats."
    )


class _Staged:
    """One staging of one commit."""

    def __init__(self, folder: Folder, staging: Staging, manifest: Manifest, prefix: str, run_id: str | None) -> None:
        self._folder, self._staging, self._manifest, self._prefix = folder, staging, manifest, prefix
        self._run_id = run_id or manifest.commit_id
        self.id = self._new_id()

    def _new_id(self) -> str:
        """The same for one that was killed before the manifest, or that waits; another one after it was synced."""
        number = 0
        while True:
            found = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._manifest.commit_id}/{self._prefix}/{number}"))
            name = sidecar_of(dataset_file(found, MANIFEST))
            if not any(self._staging.exists(f"{folder}/{name}") for folder in (SYNCED_DIRNAME, FAILED_DIRNAME)):
                return found
            number += 1

    def stage(self, content: bytes) -> list[StagedShard]:
        shards = [_File(one.file, "data", one.samples or 0, one.crc32c) for one in self._manifest.shards]
        parts = [_File(one.file, "final") for one in self._manifest.index_parts if self._has(one.file)]
        count = len(shards) + len(parts) + 1
        found = [self._stage(one, count) for one in (*shards, *parts)]
        return [*found, self._stage(_File(MANIFEST, "final"), count, content)]

    def _has(self, part: str) -> bool:
        """Whether a part of the index is there. Readers do without an index that is not whole."""
        if not self._folder.is_file(part):
            _LOGGER.warning("%s/%s is missing: the index is staged without it.", self._folder.location, part)
            return False
        return True

    def _stage(self, file: _File, count: int, content: bytes | None = None) -> StagedShard:
        name = dataset_file(self.id, file.name)
        for folder in FOLDERS:
            known = read_sidecar(self._staging, folder, name)
            if known and self._staging.exists(f"{folder}/{name}"):
                return staged(self._staging, folder, name, known)
        with drafted(self._staging, f"{PENDING_DIRNAME}/{name}") as draft:
            with explained(draft):
                written = self._copy(file, draft) if content is None else _write(draft, content)

            def sidecar(found: Digest) -> Sidecar:
                dataset: Mapping[str, Any] = {"id": self.id, "prefix": self._prefix, "role": file.role, "files": count}
                return new_sidecar(
                    run_id=self._run_id, path_in_repo=f"{self._prefix}/{file.name}".lstrip("/"), n_rows=file.rows,
                    size=found.bytes, sha256=found.sha256, provenance={"commit_id": self._manifest.commit_id},
                    dataset=dataset, **({} if content is None else {"created_at": self._time()}),
                )  # fmt: skip

            return put_in_place(self._staging, draft, name, written, sidecar, lambda body: digest(body) == written)

    def _time(self) -> str:
        """Now, or just after the staging before if clocks differ: the later one is the dataset."""
        suffix, latest, current = sidecar_of(dataset_file("", MANIFEST)), "", now()
        for folder in FOLDERS:
            for name in self._staging.names(folder):
                known = (
                    read_sidecar(self._staging, folder, name.removesuffix(SUFFIX)) if name.endswith(suffix) else None
                )
                if known and known.dataset and known.dataset["prefix"] == self._prefix:
                    latest = max(latest, known.created_at)
        if latest < current:
            return current
        return (datetime.fromisoformat(latest) + timedelta(microseconds=1)).isoformat(timespec="microseconds")

    def _copy(self, file: _File, draft: Path) -> Digest:
        """Make the draft a link to the file, or a copy of it. Raises `DamagedShardError` for another checksum."""
        found = sha256()
        if _linked(self._folder, file.name, draft):
            with draft.open("rb") as body:
                length, crc32c = checksum(body, found.update)
        else:
            with self._folder.open(file.name) as source, draft.open("xb") as target:

                def copy(chunk: bytes) -> None:
                    found.update(chunk)
                    target.write(chunk)

                length, crc32c = checksum(source, copy)
                target.flush()
                os.fsync(target.fileno())
        if file.crc32c not in (None, crc32c):
            raise DamagedShardError(
                f"{self._folder.location}/{file.name} is not what the manifest says: its bytes differ"
            )
        return Digest(length, found.hexdigest())


def _linked(folder: Folder, name: str, draft: Path) -> bool:
    """Make the draft another name of the file, where the file system can. Shards are never written in place."""
    if not isinstance(folder, LocalFolder):
        return False
    try:
        # A link to what a symbolic link names, so that nothing else can take its place.
        os.link((folder.path / name).resolve(strict=True), draft)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder.location}/{name} is missing") from None
    except OSError:
        return False
    return True


def _write(draft: Path, content: bytes) -> Digest:
    with draft.open("xb") as body:
        body.write(content)
        body.flush()
        os.fsync(body.fileno())
    return Digest(len(content), sha256(content).hexdigest())
