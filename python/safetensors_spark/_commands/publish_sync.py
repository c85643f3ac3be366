"""`safetensors-spark publish sync`, and how a sync tells what it does."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from safetensors_spark._errors import counted, printable
from safetensors_spark._extras import require

if TYPE_CHECKING:
    from safetensors_spark.publish import StagedShard, SyncReport
    from safetensors_spark.publish._staging import Staging

# Files are still pending: the budget is spent, or the Hub could not be reached.
REMAINS = 3


def sync_directory(args: argparse.Namespace) -> int:
    if args.watch is not None:
        return _watch(args)
    existing(args.directory)
    return told(args, _sync_once(args), args.dry_run)


def _sync_once(args: argparse.Namespace) -> SyncReport:
    return sync_to(args.directory, args, dry_run=args.dry_run, keep=args.keep)


def _watch(args: argparse.Namespace) -> int:
    """Sync again and again, until SIGINT or SIGTERM. What they interrupt continues with the next sync."""
    from safetensors_spark.publish import list_pending

    code, last = 0, None
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            report = _sync_once(args)
            # What is new is told, and not all day that nothing is.
            if report != last or report.n_committed:
                code, last = told(args, report, args.dry_run), report
            time.sleep(args.watch)
    except KeyboardInterrupt:
        return REMAINS if list_pending(args.directory) else code
    finally:
        signal.signal(signal.SIGTERM, before)


def existing(directory: str) -> Staging:
    """The staging directory. One that does not exist would seem to be empty."""
    from safetensors_spark.publish._staging import check_staging, open_staging

    staging = open_staging(directory)
    check_staging(staging, must_exist=True)
    return staging


def sync_to(directory: str | os.PathLike[str], args: argparse.Namespace, **options: Any) -> SyncReport:
    """Sync to the repository of the arguments, and show how far it is."""
    from safetensors_spark.publish import list_pending, sync_pending

    require("publish", ("huggingface_hub",))
    with _bar(list_pending(directory)) as advance:
        return sync_pending(
            directory, repo_id=args.repo, create_pr=args.create_pr, revision=args.revision, progress=advance, **options
        )


def told(args: argparse.Namespace, report: SyncReport, dry_run: bool = False) -> int:
    """Print the report. Returns the exit code."""
    if args.json:
        print(json.dumps(dataclasses.asdict(report)), flush=True)
    else:
        for error in report.errors:
            print(printable(f"safetensors-spark: {error}"), file=sys.stderr)
        files, commits = counted(report.n_committed, "file"), counted(report.n_commits, "commit")
        done = f"{files} in {commits}, {report.n_failed:,} failed, {report.n_remaining:,} remaining"
        what = f"{files} would be committed, in {commits}" if dry_run else done
        print(printable(f"{args.repo}: {what}."), flush=True)
    is_left = report.errors if dry_run else report.n_remaining
    return 1 if report.n_failed else REMAINS if is_left else 0


def _hide_bars_of_the_client() -> None:
    from huggingface_hub.constants import HF_HUB_DISABLE_PROGRESS_BARS
    from huggingface_hub.utils import disable_progress_bars

    # Who has set it has decided.
    if HF_HUB_DISABLE_PROGRESS_BARS is None:
        disable_progress_bars()


@contextmanager
def _bar(waiting: list[StagedShard]) -> Iterator[Callable[[StagedShard, int], None]]:
    """What counts files and bytes: a bar on a terminal, of rich or else of the Hub's client; nothing in a pipe."""
    is_drawn = sys.stderr.isatty() and find_spec("rich")
    if is_drawn or not sys.stderr.isatty():
        _hide_bars_of_the_client()
    if not is_drawn:
        yield lambda shard, size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task, begun, done = bar.add_task("", total=len(waiting)), time.monotonic(), 0

        def advance(shard: StagedShard, size: int) -> None:
            nonlocal done
            done += size
            rate = done / max(time.monotonic() - begun, 1e-3) / 1e6
            bar.update(task, advance=1, description=f"{done / 1e6:,.1f} MB, {rate:,.1f} MB/s")

        yield advance
