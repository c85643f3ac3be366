"""`safetensors-spark publish`."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from safetensors_spark._commands import tables
from safetensors_spark._commands.publish_dataset import publish_dataset
from safetensors_spark._commands.publish_sync import REMAINS, existing, sync_directory
from safetensors_spark._errors import counted

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "publish",
        help="commit datasets and staged shards to the Hugging Face Hub",
        description="Exit codes: 0 all is published, 1 a file was refused, 2 it could not start, 3 files remain.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    dataset = _action(actions, "dataset", "publish the dataset at PATH; it is staged automatically", publish_dataset)
    dataset.add_argument("path", help="a dataset in a local folder")
    _repository(dataset)
    dataset.add_argument("--path-in-repo", default="", metavar="FOLDER", help="by default the repository's root")
    dataset.add_argument("--public", action="store_true", help="create a public repository; by default it is private")

    sync = _action(actions, "sync", "commit the pending files of the staging directory", sync_directory)
    _directory(sync)
    _repository(sync)
    sync.add_argument(
        "--watch", type=_pause, metavar="SECONDS", help="repeat after this pause, until SIGINT or SIGTERM"
    )
    sync.add_argument("--dry-run", action="store_true", help="report what would be committed, and change nothing")
    sync.add_argument(
        "--keep", type=_time, metavar="DAYS", help="remove files from synced/ that were committed longer ago"
    )

    _directory(_action(actions, "status", "count pending, synced and failed files", status))
    _directory(_action(actions, "retry", "move failed files back to pending", retry))
    prune = _action(actions, "prune", "remove the leftovers of killed writers", prune_directory)
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
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0")
    return value


def _pause(text: str) -> float:
    """Seconds between syncs, which ask the Hub each time."""
    if not (value := _time(text)):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def status(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME, remaining_budget
    from safetensors_spark.publish._staged import pairs

    staging = existing(args.directory)
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


def _reason(sidecar: Any) -> str:
    return str((sidecar.fields.get("failed") or {}).get("reason", "unknown"))


def retry(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import retry_failed

    existing(args.directory)
    moved = [shard.path_in_repo for shard in retry_failed(args.directory)]
    print(json.dumps({"retried": moved}) if args.json else f"{counted(len(moved), 'file')} pending again.")
    return 0


def prune_directory(args: argparse.Namespace) -> int:
    from safetensors_spark.publish import prune_orphans

    existing(args.directory)
    removed = [str(one) for one in prune_orphans(args.directory, older_than_s=args.older_than)]
    print(json.dumps({"removed": removed}) if args.json else f"{counted(len(removed), 'file')} removed.")
    return 0
