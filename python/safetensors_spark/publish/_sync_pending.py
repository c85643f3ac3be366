"""`sync_pending` and `retry_failed`. What they need to talk to the Hub is imported when they are called."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._extras import require
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.publish._sidecar import sidecar_of
from safetensors_spark.publish._staged import StagedShard, dataset_file, move, pairs, read_sidecar, repair
from safetensors_spark.publish._staging import (
    FAILED_DIRNAME,
    PENDING_DIRNAME,
    SYNCED_DIRNAME,
    Staging,
    check_staging,
    open_staging,
)
from safetensors_spark.publish._sync_lock import sync_lock
from safetensors_spark.publish._sync_report import SyncReport
from safetensors_spark.publish._sync_state import BUDGET, WINDOW_S, SyncState

# What the Hub recommends for one commit.
_MOST_FILES = 100


def sync_pending(
    staging_dir: str | os.PathLike[str],
    *,
    repo_id: str,
    token: str | bool | None = None,
    budget: int = BUDGET,
    window_s: float = WINDOW_S,
    max_batch: int = 500,
    max_retries: int = 3,
    repo_type: str = "dataset",
    create_pr: bool = False,
    revision: str | None = None,
    dry_run: bool = False,
    commit_prefix: str = "Add",
    keep: float | None = None,
    progress: Callable[[StagedShard, int], None] = lambda shard, size: None,
) -> SyncReport:
    """Commit the pending files to a repository of the Hugging Face Hub.

    Shards go first. A dataset's manifest, index and card go last, in one commit that also deletes the shards that
    only the previous manifest named: every revision has the old dataset or the new one. Before each commit the syncer
    queries the files on the Hub, so that interrupted commits, and those whose answer was lost, are not made
    twice. Committed files move to `synced/`, and a single file that the Hub refuses to `failed/`.

    Args:
        staging_dir: the staging directory, a path or an fsspec URL.
        repo_id: the repository, such as `me/points`.
        token: a token with write access; by default the one of `hf auth login` or `HF_TOKEN`.
        budget: the maximum number of commits in `window_s` seconds.
        max_batch: the maximum number of files in a commit. The Hub recommends 100, so larger values count as 100.
        max_retries: how often to retry a failed request, or a commit in conflict with another one.
        create_pr: commit to a pull request for `main`. An incomplete one is continued while it is open.
        revision: the branch; `main` by default.
        dry_run: report what would be committed, and change nothing.
        commit_prefix: the first words of commit messages.
        keep: remove files from `synced/` that were committed more than so many days ago.
        progress: called with each file that is now in the repository, and its length.

    Raises:
        InvalidWriteError: `repo_id` or `repo_type` is not valid, `revision` is given for a pull request, or a number is
            out of range.
        NotADirectoryError: the staging directory is a file, or a folder of something else.
        HubAccessError: the repository or revision does not exist, or the token may not write to it. Nothing is lost:
            all files stay pending.
        StagingBusyError: another syncer is running, or has taken over from this one, which paused for minutes.
        InvalidSidecarError: a sidecar is damaged.
    """
    require("publish", ("huggingface_hub",))
    from safetensors_spark.publish._hub import HubRepo
    from safetensors_spark.publish._sync import Sync

    if max_batch < 1:
        raise InvalidWriteError(
            f"max_batch is {max_batch}, expected at least 1: files of a commit, of which "
            f"more than {_MOST_FILES} are {_MOST_FILES}."
        )
    if max_retries < 0:
        raise InvalidWriteError(f"max_retries is {max_retries}, expected 0 or more.")
    if create_pr and revision not in (None, "main"):
        raise InvalidWriteError(
            f"a pull request is for `main`, and revision is `{revision}`. Leave one of the two out; to add to a pull "
            "request that is there, name it alone, such as refs/pr/1."
        )
    if keep is not None and not keep >= 0:
        raise InvalidWriteError(f"keep is {keep!r}, expected a number of days, 0 or more.")
    staging = open_staging(staging_dir)
    check_staging(staging)
    hub = HubRepo(repo_id, repo_type, revision or "main", token)

    def begun(check: Callable[[], None] = lambda: None) -> Sync:
        return Sync(
            staging,
            hub,
            SyncState(staging, budget, window_s),
            min(max_batch, _MOST_FILES),
            max_retries,
            commit_prefix,
            progress,
            check,
        )

    if dry_run:
        return begun().dry_run()
    with sync_lock(staging_dir) as check:
        # Another syncer may have written its state while this one waited.
        sync = begun(check)
        repair(staging)
        sync.run(create_pr)
        if keep is not None:
            _remove_synced(staging, keep)
    return sync.report


def retry_failed(staging_dir: str | os.PathLike[str]) -> list[StagedShard]:
    """Move all files from `failed/` back to `pending/`, where the next sync finds them.

    Raises:
        NotADirectoryError: the staging directory is a file, or a folder of something else.
        StagingBusyError: a syncer is running.
    """
    staging = open_staging(staging_dir)
    check_staging(staging)
    with sync_lock(staging_dir):
        repair(staging)
        failed = [shard for shard, _ in pairs(staging, FAILED_DIRNAME)]
        return [move(staging, shard, PENDING_DIRNAME, failed=None) for shard in failed]


def _remove_synced(staging: Staging, days: float) -> None:
    """Remove what was committed longer ago. Shards stay until the manifest of their dataset is committed."""
    found = list(pairs(staging, SYNCED_DIRNAME))
    for shard, sidecar in found:
        dataset = sidecar.dataset and str(sidecar.dataset.get("id"))
        if dataset and not _is_synced(staging, dataset):
            continue
        if _is_older((sidecar.fields.get("synced") or {}).get("at"), days):
            staging.delete(f"{SYNCED_DIRNAME}/{shard.name}")
            staging.delete(sidecar_of(f"{SYNCED_DIRNAME}/{shard.name}"))


def _is_older(at: Any, days: float) -> bool:
    """Whether a time is longer ago; not of what somebody else has moved, which does not say when."""
    try:
        return (datetime.now(timezone.utc) - datetime.fromisoformat(at)) / timedelta(days=1) > days
    except (TypeError, ValueError):
        return False


def _is_synced(staging: Staging, dataset: str) -> bool:
    """Whether its manifest is committed, or was, and is removed here."""
    manifest = dataset_file(dataset, MANIFEST)
    return not any(read_sidecar(staging, folder, manifest) for folder in (PENDING_DIRNAME, FAILED_DIRNAME))
