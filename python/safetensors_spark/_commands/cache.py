"""`safetensors-spark cache`."""

from __future__ import annotations

import argparse
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from safetensors_spark._commands import tables
from safetensors_spark._files.cache import ENVIRONMENT, Cache, Cached, default_directory

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "cache",
        help="list or clear the cache of remote datasets",
        description=f"The cache is the directory of the environment variable {ENVIRONMENT}, or in the user's cache.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    actions.add_parser("list", help="list the datasets that have shards in it").set_defaults(run=show)
    actions.add_parser("clear", help="delete all shards that are not in use").set_defaults(run=clear)


def show(_: argparse.Namespace) -> int:
    cache = _cache()
    shards = sorted(cache.shards(), key=lambda one: one.dataset)
    rows = [_row(dataset, list(found)) for dataset, found in groupby(shards, key=lambda one: one.dataset)]
    if rows:
        tables.show(tables.Table(str(cache.directory), ("dataset", "shards", "bytes", "last used"), rows))
    print(_summary(cache))
    return 0


def clear(_: argparse.Namespace) -> int:
    cache = _cache()
    before = len(cache.shards())
    cache.make_room(0)
    print(f"Deleted {before - len(cache.shards()):,} shards. {_summary(cache)}")
    return 0


def _cache() -> Cache:
    return Cache(default_directory(), 0)


def _row(dataset: str, shards: list[Cached]) -> tuple[str, ...]:
    used = datetime.fromtimestamp(max(one.used for one in shards))
    return dataset, f"{len(shards):,}", f"{sum(one.bytes for one in shards):,}", f"{used:%Y-%m-%d %H:%M}"


def _summary(cache: Cache) -> str:
    shards = cache.shards()
    if not shards:
        return f"The cache {cache.directory} is empty."
    return f"{len(shards):,} shards, {sum(one.bytes for one in shards):,} bytes in {cache.directory}."
