"""The commit of a dataset whose shards tasks have written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from safetensors_spark._errors import InvalidManifestError
from safetensors_spark._files.commit.existing import read_existing
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.dataset import DatasetWriter, WriteRecord
from safetensors_spark.pipeline._operations import Commit


def commit_dataset(commit: Commit, records: Iterator[WriteRecord]) -> str:
    """Make what tasks have written a dataset. Returns the name of its first shard, if there are rows.

    A task that is run again after the commit, since its own record was lost, finds its shards in the manifest.
    """
    written = list(records)
    files = [shard.file for record in written for shard in record.shards]
    is_there = DatasetFiles(commit.path).has(files)
    if not is_there or (not files and commit.options.get("mode") == "overwrite"):
        DatasetWriter(commit.path, **commit.options).commit(written)
    return files[0] if files else ""


class DatasetFiles:
    """The shards that a dataset has, and those that wait for a commit, as they were when it was first asked."""

    def __init__(self, path: str) -> None:
        self._target = open_target(path)

    @cached_property
    def _committed(self) -> frozenset[str] | None:
        try:
            manifest = read_existing(self._target)
        except InvalidManifestError:
            # The write says so, or replaces it.
            return None
        return None if manifest is None else frozenset(shard.file for shard in manifest.shards)

    def has(self, files: Iterable[str]) -> bool:
        """Whether these are shards of the dataset."""
        return self._committed is not None and self._committed.issuperset(files)

    def keeps(self, record: WriteRecord) -> bool:
        """Whether what a task has written is in the dataset, or waits for its commit."""
        files = [shard.file for shard in record.shards]
        return self.has(files) or all(self._target.status(f"{record.folder}/{file}") is not None for file in files)
