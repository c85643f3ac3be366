"""Stagings of a dataset after which a later one was committed: committed now, they would bring back the old dataset."""

from __future__ import annotations

from collections.abc import Iterable

from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.publish._sidecar import Sidecar
from safetensors_spark.publish._staged import StagedShard, dataset_file, pairs, remove_dataset
from safetensors_spark.publish._staging import FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME, Staging


def manifests(staged: Iterable[tuple[StagedShard, Sidecar]]) -> dict[str, Sidecar]:
    """The datasets whose manifest is among these, in their order."""
    ids = ((shard, sidecar, str(sidecar.dataset["id"])) for shard, sidecar in staged if sidecar.dataset)
    return {dataset: sidecar for shard, sidecar, dataset in ids if shard.name == dataset_file(dataset, MANIFEST)}


def prefix_of(sidecar: Sidecar) -> str:
    """The folder of the repository that a file's dataset goes to."""
    return str((sidecar.dataset or {})["prefix"])


def remove_superseded(staging: Staging, repo: tuple[str, str, str]) -> list[str]:
    """Remove what is left of such stagings, and say so.

    Args:
        repo: the identifier, type and revision of the repository.
    """
    left = manifests([*pairs(staging, PENDING_DIRNAME), *pairs(staging, FAILED_DIRNAME)])
    if not left:
        return []
    latest: dict[str, Sidecar] = {}
    for sidecar in manifests(pairs(staging, SYNCED_DIRNAME)).values():
        record, prefix = sidecar.fields.get("synced") or {}, prefix_of(sidecar)
        is_here = (record.get("repo_id"), record.get("repo_type"), record.get("revision")) == repo
        if is_here and (prefix not in latest or latest[prefix].created_at < sidecar.created_at):
            latest[prefix] = sidecar
    removed = []
    for dataset, sidecar in left.items():
        later = latest.get(prefix_of(sidecar))
        if later and sidecar.created_at < later.created_at:
            remove_dataset(staging, dataset)
            removed.append(
                f"{sidecar.path_in_repo}, staged {sidecar.created_at}, is removed and not committed any more: a later "
                f"one, staged {later.created_at}, is in {repo[0]}."
            )
    return removed
