"""Records of commits: `_pending/{id}` names the files that a commit may add or delete, one on each line.

If the commit dies, the next write cleans up by it. Records have a folder of their own, as that of the dataset may be
too large to list.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable

from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.manifest import Manifest

PENDING = "_pending"

_LOGGER = logging.getLogger("safetensors_spark")

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_RECORD = re.compile(r"[0-9a-f-]{36}")
_OLD_RECORD = re.compile(r"_commit-[0-9a-f-]{36}\.pending")
_SHARD = re.compile(rf"part-[0-9]{{5,}}-{_UUID}\.safetensors")
_PART = re.compile(r"_tensor_index(-[0-9a-f-]{36})?\.parquet")


class PendingCommit:
    """The record of one commit."""

    def __init__(self, target: Target, commit_id: str) -> None:
        self._target = target
        self._record = f"{PENDING}/{commit_id}"
        # Where the manifest may be before it replaces the old one.
        self.draft = f"{PENDING}/{commit_id}.manifest"

    def begin(self, files: Iterable[str]) -> None:
        # A record that is written in part would be taken for whole.
        temporary = f"{PENDING}/.{self._record.rpartition('/')[2]}.tmp"
        self._target.write_draft(temporary, ["\n".join(files).encode()])
        self._target.move([(temporary, self._record)])

    def end(self) -> None:
        self._target.delete(self._record)
        self._target.delete_empty(PENDING)


def found_in(target: Target) -> list[str]:
    """What other commits have left. Call this and what follows under the lock: all of them died, or have lost it."""
    return [f"{PENDING}/{name}" for name in target.names(PENDING)]


def withdraw(target: Target, found: Iterable[str]) -> None:
    """Delete the manifests that they have not put in place, so that a commit that lost the lock cannot do it any
    more.
    """
    for name in found:
        if not _RECORD.fullmatch(name.rpartition("/")[2]):
            target.delete(name)


def recover(target: Target, found: Iterable[str], manifest: Manifest | None) -> None:
    """Delete the files that the records name, except those that the manifest names; then the records."""
    for name in found:
        if _RECORD.fullmatch(name.rpartition("/")[2]) or _OLD_RECORD.fullmatch(name):
            lines = (target.read(name) or b"").decode(errors="replace").splitlines()
            files = [file for file in lines if _SHARD.fullmatch(file) or _PART.fullmatch(file)]
            if delete_unnamed(target, files, manifest):
                delete(target, name)
    target.delete_empty(PENDING)


def delete_unnamed(target: Target, files: Collection[str], manifest: Manifest | None) -> bool:
    """Delete those of the files that the manifest does not name. Returns whether they are gone."""
    named = set(manifest.files) if manifest else set()
    gone = [delete(target, file) for file in files if file not in named]
    return all(gone)


def delete(target: Target, name: str) -> bool:
    """Delete a file that a write that failed or succeeded already has left: an error must not hide that."""
    try:
        target.delete(name)
    except OSError as error:
        _LOGGER.warning("%s/%s cannot be deleted: %s", target.location, name, error)
        return False
    return True
