"""`safetensors-spark inspect`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from safetensors_spark._commands import tables

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands
    from safetensors_spark._files.inspect import Inspection
    from safetensors_spark._files.manifest import Manifest


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "inspect",
        help="show what a dataset, a checkpoint or a file contains",
        description="Tables of the files, tensors, dtypes and sizes at a path; reads the manifest, or headers alone.",
    )
    parser.add_argument("path", help="a dataset, a folder or a file: a local path, or a URL that fsspec knows")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--limit",
        type=int,
        default=20,
        metavar="N",
        help="the maximum number of files and tensors in a table (default: 20)",
    )
    parser.add_argument(
        "--sample",
        type=int,
        nargs="?",
        const=5,
        default=0,
        metavar="N",
        help="also show the first N rows or tensors (5)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from safetensors_spark._files.inspect import inspect

    found = inspect(args.path)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        for table in _report(found, args.limit):
            tables.show(table)
        if args.sample > 0:
            tables.show(_sample(args.path, found, args.sample))
    return 0


def _sample(path: str, found: Inspection, count: int) -> tables.Table:
    """The first rows of a dataset; of what is by key, or is not a dataset, the first tensors."""
    from safetensors_spark._html import short
    from safetensors_spark.dataset import open_dataset, open_store

    if found.samples is None or (found.manifest is not None and found.manifest.mode != "batch"):
        store = open_store(path)
        rows = [(key, short(store[key])) for key in islice(store, count)]
        return tables.Table(f"First {len(rows):,} of {len(store):,} tensors", ("tensor", "values"), rows)
    dataset = open_dataset(path)
    names = tuple(dataset.samples.columns)
    shown = [tuple(short(value) for value in dataset[row].values()) for row in range(min(count, len(dataset)))]
    return tables.Table(f"First {len(shown):,} of {len(dataset):,} samples", names, shown)


def _report(found: Inspection, limit: int) -> list[tables.Table]:
    files = (
        (shard.file, "" if shard.samples is None else f"{shard.samples:,}", _size(found.length(shard)))
        for shard in found.shards
    )
    columns = (
        (
            column.name,
            column.dtype or "varies",
            _shape(column.sample_shape),
            "" if column.kind == "fixed" else column.kind,
        )
        for column in found.columns
    )
    dtypes = ((total.dtype, f"{total.tensors:,}", f"{total.elements:,}", _size(total.bytes)) for total in found.dtypes)
    tensors = ((one.name, one.dtype, _shape(one.shape), _size(one.bytes)) for one in found.tensors)
    return [
        tables.Table(found.location, ("what", "value"), _about(found)),
        *_table("Columns", ("column", "dtype", "shape of a sample", "kind"), columns, len(found.columns), limit),
        *_table("Dtypes", ("dtype", "tensors", "elements", "bytes"), dtypes, len(found.dtypes), limit),
        *_table("Tensors", ("tensor", "dtype", "shape", "bytes"), tensors, len(found.tensors), limit),
        *_table("Files", ("file", "samples", "bytes"), files, len(found.shards), limit),
    ]


def _about(found: Inspection) -> list[tuple[str, str]]:
    manifest = found.manifest
    rows = [("kind", found.kind), ("files", f"{len(found.shards):,}"), ("bytes", _size(found.bytes))]
    if found.samples is not None:
        rows += [("samples", f"{found.samples:,}")]
    if manifest:
        rows += [("mode", manifest.mode), ("commit", manifest.commit_id)]
        rows += [(f"option {name}", value) for name, value in sorted(manifest.options.items())]
        rows += [("problem", f"{what}: `safetensors-spark verify` says in which shards") for what in _mixed(manifest)]
    return rows


def _mixed(manifest: Manifest) -> Iterator[str]:
    """Older versions wrote batches of different samples."""
    for column in manifest.columns if manifest.mode == "batch" and manifest.shards else ():
        if column.kind == "fixed" and None in (column.dtype, column.shape):
            yield f"samples of column `{column.name}` differ in dtype or shape"


def _table(
    title: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]], length: int, limit: int
) -> list[tables.Table]:
    """A table of the first rows, whose title tells how many there are; none without rows."""
    shown = f"{title}: {length:,}" if length <= limit else f"{title}: {limit:,} of {length:,}"
    return [tables.Table(shown, columns, list(islice(rows, limit)))] if length else []


def _shape(shape: tuple[int | None, ...] | None) -> str:
    return "varies" if shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"


def _size(count: int | None) -> str:
    return "missing" if count is None else f"{count:,}"
