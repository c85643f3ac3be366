"""Makes what writers wrote a part of a dataset: shards, index, and then the manifest, which makes all of it visible."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from safetensors_spark._errors import InvalidWriteError, SafetensorsSparkError
from safetensors_spark._files.commit.columns import merged_columns
from safetensors_spark._files.commit.existing import DAMAGED, SaveMode, check_existing, read_existing
from safetensors_spark._files.commit.index import IndexCommit, part_of
from safetensors_spark._files.commit.leftovers import delete_leftovers
from safetensors_spark._files.commit.lock import CommitLock, locked
from safetensors_spark._files.commit.pending import PendingCommit, delete_unnamed, found_in, recover, withdraw
from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.commit.written import STAGING, WriteRecord
from safetensors_spark._files.manifest import INDEX, MANIFEST, IndexPart, Manifest, Mode
from safetensors_spark._files.manifest_writer import manifest_text

_LOGGER = logging.getLogger("safetensors_spark")

# A directory of more shards is not listed.
MAX_LISTED = 10_000


@dataclass(frozen=True)
class CommitPlan:
    """What a commit is to do.

    Attributes:
        options: as the user gave them, for the manifest.
    """

    save_mode: SaveMode
    mode: Mode
    options: Mapping[str, str]
    generate_index: bool = False


class DatasetCommit:
    """One commit. The lock allows one at a time."""

    def __init__(self, target: Target, plan: CommitPlan, records: Sequence[WriteRecord]) -> None:
        self._target, self._plan, self._records = target, plan, records
        self._id = str(uuid.uuid4())
        self._shards = [shard for record in records for shard in record.shards]
        self._pending = PendingCommit(target, self._id)
        # A dataset of no rows, which a first write begins with: without a manifest, readers would take its first shards
        # for plain files.
        self._claim = Manifest(str(uuid.uuid4()), plan.mode, plan.options, (), ())

    def run(self) -> Manifest:
        """Commit. Returns the manifest that is in place then."""
        with locked(self._target) as lock:
            # All that depends on the dataset is decided here: other writes may have committed since this one began.
            old = self._recovered()
            kept = old if self._plan.save_mode == "append" else None
            replaced = old if self._plan.save_mode == "overwrite" else None
            columns = merged_columns(self._plan.mode, kept, self._records)
            self._check_new(old)
            shards = (*(kept.shards if kept else ()), *self._shards)
            # Rows of Python's writers have no order of columns.
            key_place = kept.key_place if kept and kept.shards else None
            manifest = Manifest(self._id, self._plan.mode, self._plan.options, columns, shards, key_place=key_place)
            index = self._index(kept)
            taken = self._index_files(old)
            obsolete = [*taken, *(shard.file for shard in (replaced.shards if replaced else ()))]
            self._pending.begin([*(shard.file for shard in self._shards), *obsolete, part_of(self._id)])
            try:
                manifest = self._publish(manifest, old, kept, index, taken, lock)
            except BaseException:
                self._undo(index, lock)
                raise
            self._finish(manifest, obsolete, index, lock)
            return manifest

    def _recovered(self) -> Manifest | None:
        """The dataset that is there, without what commits that died or lost the lock have left."""
        found = found_in(self._target)
        withdraw(self._target, found)
        columns = next((record.columns for record in self._records if record.shards), ())
        old = check_existing(self._target, self._plan.save_mode, self._plan.mode, columns)
        # The shards of a damaged manifest are not known, and stay.
        if old is not DAMAGED:
            recover(self._target, found, old)
        return old

    def _check_new(self, old: Manifest | None) -> None:
        names = [shard.file for shard in self._shards]
        there = {shard.file for shard in (old.shards if old else ())}
        if again := next((name for name in names if name in there), None):
            raise InvalidWriteError(
                f"{again} is in {self._target.location} already: these records were committed before."
            )
        if len(set(names)) < len(names):
            raise InvalidWriteError("A record was given twice. Pass what each writer's `finish` returned once.")

    def _index(self, kept: Manifest | None) -> IndexCommit | None:
        """None if the dataset has no index after this commit."""
        parts = kept.index_parts if kept else ()
        if not self._plan.generate_index and not any(self._target.status(part.file) for part in parts):
            return None
        return IndexCommit(self._target, self._id, self._plan.mode == "key_value")

    def _index_files(self, old: Manifest | None) -> list[str]:
        """The files of the index, and an index that no manifest names."""
        named = [part.file for part in (old.index_parts if old else ())]
        return named if INDEX in named or self._target.status(INDEX) is None else [*named, INDEX]

    def _publish(
        self,
        manifest: Manifest,
        old: Manifest | None,
        kept: Manifest | None,
        index: IndexCommit | None,
        taken: Sequence[str],
        lock: CommitLock,
    ) -> Manifest:
        if old is None:
            self._replace(self._claim, lock)
        lock.verify()
        self._move_shards()
        parts: tuple[IndexPart, ...] = index.prepare(kept, self._shards, taken) if index else ()
        lock.verify()
        if index:
            index.publish(parts)
        complete = replace(manifest, index_parts=parts)
        try:
            self._replace(complete, lock)
        except OSError as error:
            # The file system may report an error although it has done so. An error would make the user repeat the
            # write.
            if not self._arrived(error):
                raise
            _LOGGER.warning(
                "The manifest in %s is written, though the request failed: %s", self._target.location, error
            )
        return complete

    def _move_shards(self) -> None:
        """Put the shards in their places. Those of writers on other machines must be there."""
        pairs = [(f"{one.folder}/{shard.file}", shard) for one in self._records for shard in one.shards]
        for staged, shard in pairs:
            status = self._target.status(staged)
            if status is None or status.length != shard.bytes:
                raise InvalidWriteError(
                    f"Shard {shard.file} was written, but is not in "
                    f"{self._target.location}/{staged.rpartition('/')[0]} as seen by this process. Name a path that is "
                    "the same place for every writer, and commit a record once, within a week."
                )
        self._target.move((staged, shard.file) for staged, shard in pairs)

    def _replace(self, manifest: Manifest, lock: CommitLock) -> None:
        self._target.replace(MANIFEST, self._pending.draft, [manifest_text(manifest)], lock.verify)

    def _arrived(self, error: OSError) -> bool:
        """Whether the manifest has been replaced. Another write that has taken the lock may have appended since."""
        try:
            found = read_existing(self._target)
        except (OSError, SafetensorsSparkError):
            raise OSError(
                f"It is unknown whether the write to {self._target.location} took effect: replacing its {MANIFEST} "
                f"ended in an error. It did if the manifest has the `commit_id` {self._id}; if not, check that no "
                f"other write has replaced it since, and write again. The error was: {error}"
            ) from error
        if found is None:
            return False
        return found.commit_id == self._id or any(shard in found.shards for shard in self._shards[:1])

    def _undo(self, index: IndexCommit | None, lock: CommitLock) -> None:
        """Leave what a manifest names: this write's own may have arrived, or another write may have taken the lock."""
        try:
            manifest = read_existing(self._target)
            names = [shard.file for shard in self._shards]
            gone = delete_unnamed(self._target, [*names, part_of(self._id)], manifest)
            if index:
                index.clean_up()
            if gone:
                # Deleting shards may have taken longer than others respect the lock.
                if lock.is_held() and manifest and manifest.commit_id == self._claim.commit_id:
                    self._target.delete(MANIFEST)
                    self._target.delete(INDEX)
                self._pending.end()
        except (OSError, SafetensorsSparkError) as error:
            _LOGGER.warning("A failed commit to %s cannot be undone: %s", self._target.location, error)

    def _finish(self, manifest: Manifest, obsolete: Sequence[str], index: IndexCommit | None, lock: CommitLock) -> None:
        """The write has succeeded: nothing that fails from here on is an error of it."""
        try:
            for record in self._records:
                self._target.delete_folder(record.folder)
            self._target.delete_empty(STAGING)
            if lock.is_held() and delete_unnamed(self._target, obsolete, manifest):
                self._pending.end()
            if len(manifest.shards) <= MAX_LISTED and lock.is_held():
                delete_leftovers(self._target, manifest)
        except (OSError, SafetensorsSparkError) as error:
            _LOGGER.warning("%s cannot be cleaned up: %s", self._target.location, error)
