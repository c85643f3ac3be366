"""The commit of a dataset whose shards tasks have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from safetensors_spark._errors import InvalidManifestError, PipelineError
from safetensors_spark._files.commit.existing import read_existing
from safetensors_spark._files.commit.target import open_target
from safetensors_spark._files.commit.written import STAGING
from safetensors_spark._files.shard_file import ShardNames
from safetensors_spark.dataset import DatasetWriter, WriteRecord
from safetensors_spark.pipeline._operations import Commit


def commit_dataset(commit: Commit, records: Iterator[WriteRecord], write_ids: tuple[str, ...], *, resumes: bool) -> str:
    """Make what tasks have written a dataset, unless it is one already. Returns the id by which `has` finds it.

    A task that is run again after the commit, since its own record was lost, finds its shards in the manifest. So does
    one of a run that has no record of the commit at all.

    Args:
        write_ids: those that shards of the same rows may have: the first one is that of the records.
        resumes: rows that the dataset has of another run are not written again.
    """
    written = list(records)
    dataset = DatasetFiles(commit)
    found = next((one for one in write_ids if dataset.has(one)), None)
    if found is not None and (resumes or dataset.has_all(written)):
        dataset.discard(written)
        return found
    if not any(record.shards for record in written):
        if not dataset.exists or commit.options.get("mode") == "overwrite":
            DatasetWriter(commit.path, **commit.options).commit(written)
        return ""
    DatasetWriter(commit.path, **commit.options).commit(written)
    return write_ids[0]


class DatasetFiles:
    """The shards that a dataset has, and those that wait for a commit, as they were when it was first asked."""

    def __init__(self, commit: Commit) -> None:
        self._target = open_target(commit.path)
        self._is_replaced = commit.options.get("mode") == "overwrite"

    @cached_property
    def _committed(self) -> tuple[str, ...] | None:
        try:
            manifest = read_existing(self._target)
        except InvalidManifestError:
            # The write says so, or replaces it.
            return None
        return None if manifest is None else tuple(shard.file for shard in manifest.shards)

    @cached_property
    def _there(self) -> frozenset[str]:
        return frozenset(self._target.names())

    @property
    def exists(self) -> bool:
        return self._committed is not None

    def has(self, write_id: str) -> bool:
        """Whether the dataset has the rows of a write. A commit has made all of its shards visible, or none.

        Raises `PipelineError` if shards have been deleted, unless the write replaces them.
        """
        named = [file for file in self._committed or () if ShardNames.have(write_id, file)]
        gone = [file for file in named if file not in self._there]
        if gone and not self._is_replaced:
            raise PipelineError(
                f"{self._target.location} has this pipeline's rows, but its file {gone[0]} no longer exists. "
                "Restore it; or delete the dataset, or write with mode='overwrite', to make all of it again."
            )
        return bool(named) and not gone

    def has_all(self, records: Iterable[WriteRecord]) -> bool:
        """Whether it has what tasks have written."""
        files = {shard.file for record in records for shard in record.shards}
        return not files or files <= self._there.intersection(self._committed or ())

    def keeps(self, record: WriteRecord) -> bool:
        """Whether what a task has written is in the dataset, or waits for its commit."""
        return self.has_all([record]) or all(
            self._target.status(f"{record.folder}/{shard.file}") is not None for shard in record.shards
        )

    def discard(self, records: Iterable[WriteRecord]) -> None:
        """Delete what tasks have written and nobody commits."""
        for record in records:
            self._target.delete_folder(record.folder)
        self._target.delete_empty(STAGING)
