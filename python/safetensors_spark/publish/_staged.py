"""Staged files: pairs of a body and a sidecar, which says that the body is whole, and their way between the folders."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors_spark._errors import InvalidShardError
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.publish._local_staging import DRAFT_SUFFIX
from safetensors_spark.publish._sidecar import SUFFIX, Sidecar, parse_sidecar, sidecar_of
from safetensors_spark.publish._staging import (
    FAILED_DIRNAME,
    FOLDERS,
    PENDING_DIRNAME,
    Staging,
    make_layout,
    open_staging,
)

_LOGGER = logging.getLogger("safetensors_spark")


# A move takes less, so that one which is older was interrupted.
_SETTLED_S = 60.0
# What is older and incomplete, was left by a writer that died.
ORPHAN_S = 3600.0


@dataclass(frozen=True)
class StagedShard:
    """A staged shard.

    Attributes:
        run_id: the run identifier, which every row has.
        parquet_path: the absolute path of the staged file, or its URL. Files of datasets are not Parquet.
        sidecar_path: the absolute path of its `.meta.json`, or its URL.
        path_in_repo: where it goes in the repository.
        n_rows: how many rows it has.
    """

    run_id: str
    parquet_path: Path | str
    sidecar_path: Path | str
    path_in_repo: str
    n_rows: int

    @property
    def name(self) -> str:
        """The name of the body, which it has in each folder."""
        return _name(self.parquet_path)


def ensure_staging_layout(staging_dir: str | os.PathLike[str]) -> None:
    """Make the staging directory and its folders `pending`, `synced` and `failed`, unless they exist."""
    make_layout(open_staging(staging_dir))


def list_pending(staging_dir: str | os.PathLike[str]) -> list[StagedShard]:
    """The shards that wait for the syncer, sorted by file name.

    Moves that were interrupted more than a minute ago are finished first. A body without a sidecar is ignored: its
    writer is still running, or died.

    Raises:
        InvalidSidecarError: a sidecar is damaged.
        IncompatibleVersionError: a newer version of this package wrote a sidecar.
    """
    staging = open_staging(staging_dir)
    repair(staging, older_than_s=_SETTLED_S)
    return [shard for shard, _ in pairs(staging, PENDING_DIRNAME)]


def move_to(shard: StagedShard, staging_dir: str | os.PathLike[str], target: str) -> StagedShard:
    """Move a shard to another folder: `synced`, `failed` or `pending`.

    The new sidecar is written there first, then the body is moved, then the old sidecar is deleted. If that is
    interrupted, the next sync, a later `list_pending`, or another call of this function finishes it.

    Returns:
        The shard with its new paths. A shard that is already there is returned unchanged.

    Raises:
        ValueError: there is no such folder.
        FileNotFoundError: the shard is not in the staging directory.
    """
    return move(open_staging(staging_dir), shard, target)


def move(staging: Staging, shard: StagedShard, target: str, **fields: Any) -> StagedShard:
    """Move a shard as `move_to` does, with these fields of its sidecar. None removes a field."""
    if target not in FOLDERS:
        raise ValueError(f"`{target}` is not a folder of a staging directory. Use one of {', '.join(FOLDERS)}.")
    source, name = folder_of(shard), shard.name
    sidecar = read_sidecar(staging, source, name)
    there = read_sidecar(staging, target, name)
    if there and sidecar and there.sha256 != sidecar.sha256:
        raise InvalidShardError(
            f"{staging.path(f'{target}/{name}')} is another file by the name of the one that is to be moved there. "
            "Move it out of the staging directory."
        )
    if there is None or (sidecar and source != target and there.moves <= sidecar.moves):
        if sidecar is None:
            raise FileNotFoundError(f"{staging.location} has no shard {name} in {source}: it was moved, or removed.")
        there = sidecar.changed(**fields, moves=sidecar.moves + 1)
        staging.make(target)
        staging.put(f"{target}/{sidecar_of(name)}", there.text())
    _finish(staging, name, target)
    return staged(staging, target, name, there)


def repair(staging: Staging, *, older_than_s: float = 0) -> None:
    """Finish interrupted moves: of several sidecars of a body, the one with the most moves says where it belongs.

    Without an age this is for the only process that moves: another one may continue with its move, and with the next.
    """
    for name, folders in _sidecars(staging).items():
        if len(folders) > 1:
            target = _belongs(staging, name, folders)
            if target and staging.age(f"{target}/{sidecar_of(name)}") >= older_than_s:
                _finish(staging, name, target)


def _sidecars(staging: Staging) -> dict[str, list[str]]:
    """For each body in their order the folders that have a sidecar of it."""
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for name in staging.names(folder):
            if name.endswith(SUFFIX):
                found.setdefault(name.removesuffix(SUFFIX), []).append(folder)
    return dict(sorted(found.items()))


def _belongs(staging: Staging, name: str, folders: list[str]) -> str | None:
    """The folder that a body is moved to; None if no move is under way."""
    read = [(folder, read_sidecar(staging, folder, name)) for folder in folders]
    found = {folder: sidecar for folder, sidecar in read if sidecar}
    if len({sidecar.sha256 for sidecar in found.values()}) > 1:
        _LOGGER.warning("%s has different files by the name %s in %s.", staging.location, name, " and ".join(found))
        return None
    return max(found, key=lambda folder: found[folder].moves) if len(found) > 1 else None


def _finish(staging: Staging, name: str, target: str) -> None:
    """Have a body whose sidecar is in its target there as well, and nothing of it elsewhere."""
    place = f"{target}/{name}"
    for folder in FOLDERS:
        if folder == target:
            continue
        other = f"{folder}/{name}"
        if staging.exists(sidecar_of(other)):
            if staging.exists(other):
                staging.move(other, place)
            staging.delete(sidecar_of(other))


def pairs(staging: Staging, folder: str, begin: str = "") -> Iterator[tuple[StagedShard, Sidecar]]:
    """The complete pairs in a folder whose names begin so, by name, without those that are being moved."""
    bodies = set(staging.names(folder))
    for name, folders in _sidecars(staging).items():
        if not name.startswith(begin) or folder not in folders:
            continue
        if len(folders) > 1 and _belongs(staging, name, folders) not in (None, folder):
            continue
        if name not in bodies:
            if staging.age(f"{folder}/{sidecar_of(name)}") >= _SETTLED_S:
                _LOGGER.warning("%s has no body: it is not synced.", staging.path(f"{folder}/{sidecar_of(name)}"))
        # None if it was moved since.
        elif sidecar := read_sidecar(staging, folder, name):
            yield staged(staging, folder, name, sidecar), sidecar


def without_body(staging: Staging, folder: str) -> list[Sidecar]:
    """The sidecars in a folder whose body is in none."""
    bodies = set(staging.names(folder))
    names = [name for name, folders in _sidecars(staging).items() if folder in folders and name not in bodies]
    lost = (name for name in names if not any(staging.exists(f"{other}/{name}") for other in FOLDERS))
    return [sidecar for name in lost if (sidecar := read_sidecar(staging, folder, name))]


def read_sidecar(staging: Staging, folder: str, name: str) -> Sidecar | None:
    """The sidecar of a body; None if it does not exist."""
    place = f"{folder}/{sidecar_of(name)}"
    content = staging.read(place)
    return None if content is None else parse_sidecar(content, str(staging.path(place)))


def staged(staging: Staging, folder: str, name: str, sidecar: Sidecar) -> StagedShard:
    """The shard that a sidecar describes."""
    place = f"{folder}/{name}"
    return StagedShard(
        sidecar.run_id,
        staging.path(place),
        staging.path(sidecar_of(place)),
        sidecar.path_in_repo,
        sidecar.n_rows,
    )


def folder_of(shard: StagedShard) -> str:
    """The folder of the staging directory that the shard was in."""
    return _name(str(shard.parquet_path).replace("\\", "/").rpartition("/")[0])


def _name(path: Path | str) -> str:
    return path.name if isinstance(path, Path) else path.rpartition("/")[2]


def prune_orphans(staging_dir: str | os.PathLike[str], *, older_than_s: float = ORPHAN_S) -> list[Path | str]:
    """Remove leftovers of dead writers: temporary files, bodies without a sidecar, sidecars without a body, and
    datasets without a manifest.

    Newer files stay, and so do the temporary files of running processes on this machine. On a mount that several
    machines share, pass more seconds than a writer may pause.

    Returns:
        The paths or URLs of what was removed.
    """
    staging = open_staging(staging_dir)
    repair(staging, older_than_s=_SETTLED_S)
    removed = _prune_datasets(staging, older_than_s)
    for folder in FOLDERS:
        names = set(staging.names(folder))
        for name in sorted(names):
            place = f"{folder}/{name}"
            if staging.age(place) < older_than_s:
                continue
            if name.endswith(DRAFT_SUFFIX):
                gone = not staging.is_alive(name)
                if gone:
                    staging.delete(place)
            elif name.endswith(SUFFIX):
                gone = not staging.exists(place.removesuffix(SUFFIX))
                if gone:
                    staging.delete(place)
            else:
                gone = not staging.exists(sidecar_of(place)) and remove_body(staging, place)
            if gone:
                removed.append(staging.path(place))
    return removed


def dataset_file(dataset: str, file: str) -> str:
    """What a file of a dataset is called in the staging directory: many datasets have files of one name."""
    return f"{dataset}-{file}"


def withdraw(staging: Staging, dataset: str) -> list[Path | str]:
    """Remove what is pending of a dataset, unless its manifest is staged. Returns what was removed."""
    manifest = sidecar_of(dataset_file(dataset, MANIFEST))
    if any(staging.exists(f"{folder}/{manifest}") for folder in FOLDERS):
        return []
    return remove_dataset(staging, dataset)


def remove_dataset(staging: Staging, dataset: str) -> list[Path | str]:
    """Remove what is pending or has failed of a dataset. Returns what was removed."""
    manifest = sidecar_of(dataset_file(dataset, MANIFEST))
    names = [
        (folder, name)
        for folder in (PENDING_DIRNAME, FAILED_DIRNAME)
        for name in staging.names(folder)
        if name.startswith(dataset_file(dataset, ""))
    ]
    # Bodies without a sidecar are nothing. The manifest's sidecar, which says that there is a dataset, is the last.
    names.sort(key=lambda one: (not one[1].endswith(SUFFIX), one[1] == manifest))
    for folder, name in names:
        staging.delete(f"{folder}/{name}")
    return [staging.path(f"{folder}/{name}") for folder, name in names]


def _prune_datasets(staging: Staging, older_than_s: float) -> list[Path | str]:
    """Remove datasets whose staging has died before the manifest."""
    ages: dict[str, list[float]] = {}
    for shard, sidecar in pairs(staging, PENDING_DIRNAME):
        if sidecar.dataset:
            place = sidecar_of(f"{PENDING_DIRNAME}/{shard.name}")
            ages.setdefault(str(sidecar.dataset.get("id")), []).append(staging.age(place))
    removed = []
    for dataset, found in ages.items():
        if min(found) >= older_than_s:
            removed += withdraw(staging, dataset)
    return removed


def remove_body(staging: Staging, name: str) -> bool:
    """Remove a body without a sidecar, unless it gets one in this moment. Returns whether it no longer exists."""
    aside = f"{name}.{uuid.uuid4().hex}{DRAFT_SUFFIX}"
    staging.move(name, aside)
    if staging.exists(sidecar_of(name)):
        staging.move(aside, name)
        return False
    staging.delete(aside)
    return True
