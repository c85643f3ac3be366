"""The commit of a dataset whose shards tasks have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from safetensors_spark.dataset import DatasetWriter, WriteRecord


def commit_dataset(path: str, options: Mapping[str, Any], records: Iterator[WriteRecord]) -> str:
    """Make what tasks have written a dataset. Returns its path.

    A task that is run again after the commit, since its own record was lost, finds its shards in the manifest.
    """
    written = list(records)
    if not _is_committed(path, written):
        DatasetWriter(path, **options).commit(written)
    return path


def _is_committed(path: str, records: list[WriteRecord]) -> bool:
    from safetensors_spark._files.commit.target import open_target
    from safetensors_spark._files.manifest import MANIFEST, read_manifest

    files = {shard.file for record in records for shard in record.shards}
    target = open_target(path)
    if not files or target.status(MANIFEST) is None:
        return False
    return files <= {shard.file for shard in read_manifest(target.folder).shards}
