"""`safetensors-spark publish`."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._commands import tables
from safetensors_spark._errors import SafetensorsSparkError, counted, printable
from safetensors_spark._extras import require

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands
    from safetensors_spark.publish import StagedShard, SyncReport
    from safetensors_spark.publish._staging import Staging

# Files are still pending: the budget is spent, or the Hub could not be reached.
REMAINS = 3


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "publish",
        help="commit datasets and staged shards to the Hugging Face Hub",
        description="Exit codes: 0 all is published, 1 the Hub refused a file, 2 it could not begin, 3 files remain.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    dataset = _action(actions, "dataset", "publish the dataset at PATH, without staging by hand", publish_dataset)
    dataset.add_argument("path", help="a dataset in a folder of this machine")
    _repository(dataset)
    dataset.add_argument("--path-in-repo", default="", metavar="FOLDER", help="by default the repository's root")
    dataset.add_argument("--public", action="store_true", help="if the repository is made; it is private otherwise")

    sync = _action(actions, "sync", "commit what is pending in the staging directory", sync_directory)
    _directory(sync)
    _repository(sync)
    sync.add_argument("--watch", type=_pause, metavar="SECONDS", help="again after each pause, until SIGINT or SIGTERM")
    sync.add_argument("--dry-run", action="store_true", help="tell what would be committed, and change nothing")
    sync.add_argument("--keep", type=_time, metavar="DAYS", help="remove what was committed longer ago from synced/")

    _directory(_action(actions, "status", "count what is pending, synced and failed", status))
    _directory(_action(actions, "retry", "move what has failed back to pending", retry))
    prune = _action(actions, "prune", "remove what writers that died have left", prune_directory)
    _directory(prune)
    prune.add_argument("--older-than", type=_time, default=3600, metavar="SECONDS", help="3600 by default")


def _action(
    actions: Commands, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)
    return parser


def _directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", help="the staging directory, a path or a URL that fsspec knows")


def _repository(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("repo", help="the dataset repository, such as me/points")
    parser.add_argument("--create-pr", action="store_true", help="commit to a pull request")
    parser.add_argument("--revision", metavar="BRANCH", help="main by default")


def _time(text: str) -> float:
    """Days or seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0")
    return value


def _pause(text: str) -> float:
    """Seconds between syncs, which ask the Hub each time."""
    if not (value := _time(text)):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def status(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME, remaining_budget
    from safetensors_spark.publish._staged import pairs

    staging = _existing(args.directory)
    found = {name: list(pairs(staging, name)) for name in (PENDING_DIRNAME, SYNCED_DIRNAME, FAILED_DIRNAME)}
    counts = {
        name: {
            "files": len(some),
            "rows": sum(shard.n_rows for shard, _ in some),
            "bytes": sum(one.size for _, one in some),
        }
        for name, some in found.items()
    }
    refused = {shard.path_in_repo: _reason(sidecar) for shard, sidecar in found[FAILED_DIRNAME]}
    budget = remaining_budget(args.directory)
    if args.json:
        print(json.dumps({**counts, "refused": refused, "remaining_budget": budget}))
    else:
        rows = [(name, *(f"{one:,}" for one in count.values())) for name, count in counts.items()]
        tables.show(tables.Table(args.directory, ("", "files", "rows", "bytes"), rows))
        if refused:
            tables.show(tables.Table("Refused", ("file", "reason"), list(refused.items())))
        print(f"{counted(budget, 'commit')} may be made now.")
    return 1 if refused else REMAINS if found[PENDING_DIRNAME] else 0


def _existing(directory: str) -> Staging:
    """The staging directory. One that is not there would seem to be empty."""
    from safetensors_spark.publish._staging import check_staging, open_staging

    staging = open_staging(directory)
    check_staging(staging, must_exist=True)
    return staging


def _reason(sidecar: Any) -> str:
    return str((sidecar.fields.get("failed") or {}).get("reason", "unknown"))


def retry(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import retry_failed

    _existing(args.directory)
    moved = [shard.path_in_repo for shard in retry_failed(args.directory)]
    print(json.dumps({"retried": moved}) if args.json else f"{counted(len(moved), 'file')} pending again.")
    return 0


def prune_directory(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import prune_orphans

    _existing(args.directory)
    removed = [str(one) for one in prune_orphans(args.directory, older_than_s=args.older_than)]
    print(json.dumps({"removed": removed}) if args.json else f"{counted(len(removed), 'file')} removed.")
    return 0


def sync_directory(args: argparse.Namespace) -> int:
    if args.watch is not None:
        return _watch(args)
    _existing(args.directory)
    return _told(args, _sync_once(args), args.dry_run)


def _sync_once(args: argparse.Namespace) -> SyncReport:
    return _sync(args.directory, args, dry_run=args.dry_run, keep=args.keep)


def _watch(args: argparse.Namespace) -> int:
    """Sync again and again, until SIGINT or SIGTERM. What they interrupt goes on with the next sync."""
    from safetensors_spark.publish import list_pending

    code, told = 0, None
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            report = _sync_once(args)
            # What is new is told, and not all day that nothing is.
            if report != told:
                code, told = _told(args, report, args.dry_run), report
            time.sleep(args.watch)
    except KeyboardInterrupt:
        return REMAINS if list_pending(args.directory) else code
    finally:
        signal.signal(signal.SIGTERM, before)


def publish_dataset(args: argparse.Namespace) -> int:
    require("publish", ("huggingface_hub",))
    from safetensors_spark.publish import retry_failed, stage_dataset
    from safetensors_spark.publish._hub import ConflictError, FailedError, HubRepo, LimitedError, RefusedError

    if not Path(args.path).is_dir():
        advice = " Of a URL, call `stage_dataset`, which takes one, and then `safetensors-spark publish sync`."
        raise FileNotFoundError(f"{args.path} is no folder of this machine.{advice if '://' in args.path else ''}")
    staging = _hidden_staging(args)
    if not os.access(staging.parent, os.W_OK):
        raise PermissionError(
            f"{staging.parent} cannot be written, where the dataset would be staged. Stage it elsewhere with "
            "`stage_dataset`, and then call `safetensors-spark publish sync`."
        )
    try:
        HubRepo(args.repo, "dataset", args.revision or "main", None).make(private=not args.public)
    except FailedError as error:
        raise SafetensorsSparkError(
            f"the Hub cannot be reached: {error}. Try again later; nothing was changed."
        ) from None
    except (ConflictError, LimitedError, RefusedError) as error:
        raise SafetensorsSparkError(f"the Hub does not make {args.repo}: {error}. Nothing was changed.") from None
    if staging.exists():
        # What an earlier run has left goes on.
        retry_failed(staging)
    stage_dataset(args.path, staging_dir=staging, path_in_repo=args.path_in_repo)
    report = _sync(staging, args)
    if not (report.n_failed or report.n_remaining):
        _remove(staging)
    return _told(args, report)


def _remove(staging: Path) -> None:
    """Of half a staging directory the next run would say that files are lost. So it gets another name first."""
    done = staging.with_name(f"{staging.name}-done")
    if done.exists():
        shutil.rmtree(done)
    staging.rename(done)
    shutil.rmtree(done)


def _hidden_staging(args: argparse.Namespace) -> Path:
    """Beside the dataset, where shards can be links, and the same place when the command is run again."""
    path = Path(args.path).resolve()
    target = "\0".join([args.repo, args.revision or "main", args.path_in_repo, str(args.create_pr)])
    return path.with_name(f".{path.name}-publish-{hashlib.sha256(target.encode()).hexdigest()[:8]}")


def _sync(directory: str | os.PathLike[str], args: argparse.Namespace, **options: Any) -> SyncReport:
    from safetensors_spark.publish import list_pending, sync_pending

    require("publish", ("huggingface_hub",))
    with _bar(list_pending(directory)) as advance:
        return sync_pending(
            directory, repo_id=args.repo, create_pr=args.create_pr, revision=args.revision, progress=advance, **options
        )


def _told(args: argparse.Namespace, report: SyncReport, dry_run: bool = False) -> int:
    if args.json:
        print(json.dumps(dataclasses.asdict(report)), flush=True)
    else:
        for error in report.errors:
            print(printable(f"safetensors-spark: {error}"), file=sys.stderr)
        files, commits = counted(report.n_committed, "file"), counted(report.n_commits, "commit")
        done = f"{files} in {commits}, {report.n_failed:,} failed, {report.n_remaining:,} remaining"
        what = f"{files} would be committed, in {commits}" if dry_run else done
        print(printable(f"{args.repo}: {what}."), flush=True)
    if dry_run:
        return REMAINS if report.errors else 0
    return 1 if report.n_failed else REMAINS if report.n_remaining else 0


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
