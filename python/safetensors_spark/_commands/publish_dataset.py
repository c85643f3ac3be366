"""`safetensors-spark publish dataset`: a dataset goes to a repository in one line."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors_spark._commands.publish_sync import sync_to, told
from safetensors_spark._errors import SafetensorsSparkError, StagingBusyError
from safetensors_spark._extras import require
from safetensors_spark._files.storage import open_folder

_LOCK = "_publish.lock"


def publish_dataset(args: argparse.Namespace) -> int:
    require("publish", ("huggingface_hub",))
    from safetensors_spark.publish import list_pending, retry_failed, stage_dataset
    from safetensors_spark.publish._stage_dataset import read_manifest

    if not Path(args.path).is_dir():
        advice = " Of a URL, call `stage_dataset`, which takes one, and then `safetensors-spark publish sync`."
        raise FileNotFoundError(f"{args.path} is not a local folder.{advice if '://' in args.path else ''}")
    read_manifest(open_folder(args.path))
    staging = _hidden_staging(args)
    if not os.access(staging.parent, os.W_OK):
        raise PermissionError(
            f"{staging.parent} cannot be written, where the dataset would be staged. Stage it elsewhere with "
            "`stage_dataset`, and then call `safetensors-spark publish sync`."
        )
    _make_repository(args)
    with _alone(staging, args):
        # What an earlier run has left continues.
        retry_failed(staging)
        try:
            stage_dataset(args.path, staging_dir=staging, path_in_repo=args.path_in_repo)
        except Exception:
            if not list_pending(staging):
                _remove(staging)
            raise
        report = sync_to(staging, args)
        if not (report.n_failed or report.n_remaining):
            _remove(staging)
    return told(args, report)


def _make_repository(args: argparse.Namespace) -> None:
    from safetensors_spark.publish._hub import ConflictError, FailedError, HubRepo, LimitedError, RefusedError

    try:
        hub = HubRepo(args.repo, "dataset", args.revision or "main", None)
        hub.make(private=not args.public)
        if args.revision:
            # Before anything is staged.
            hub.head()
    except FailedError as error:
        raise SafetensorsSparkError(
            f"the Hub cannot be reached: {error}. Try again later; nothing was changed."
        ) from None
    except (ConflictError, LimitedError, RefusedError) as error:
        raise SafetensorsSparkError(f"the Hub does not make {args.repo}: {error}. Nothing was changed.") from None


def _hidden_staging(args: argparse.Namespace) -> Path:
    """Beside the dataset, where shards can be links, and the same place when the command is run again."""
    path = Path(args.path).resolve()
    target = "\0".join([args.repo, args.revision or "main", args.path_in_repo, str(args.create_pr)])
    return path.with_name(f".{path.name}-publish-{hashlib.sha256(target.encode()).hexdigest()[:8]}")


@contextmanager
def _alone(staging: Path, args: argparse.Namespace) -> Iterator[None]:
    """Make the staging directory, and keep other commands out of it: the first to end removes it."""
    from filelock import FileLock, Timeout

    from safetensors_spark.publish import ensure_staging_layout

    ensure_staging_layout(staging)
    try:
        lock = FileLock(staging / _LOCK, timeout=0).acquire()
    except Timeout:
        raise StagingBusyError(
            f"{args.path} is being published to {args.repo} by another process. Wait until it has ended, or end it."
        ) from None
    with lock:
        yield


def _remove(staging: Path) -> None:
    """Of half a staging directory the next run would say that files are lost. So it gets another name first."""
    done = staging.with_name(f"{staging.name}-done")
    if done.exists():
        shutil.rmtree(done)
    staging.rename(done)
    shutil.rmtree(done)
