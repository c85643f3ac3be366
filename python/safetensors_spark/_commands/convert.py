"""`safetensors-spark convert`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._errors import InvalidWriteError, counted, printable

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands

# In MB.
_SHARD_SIZE = 300


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "convert",
        help="convert Parquet, .npy, WebDataset, MDS, Megatron or Hugging Face files to datasets, and back to Parquet",
        description=(
            "Write the rows of SOURCE to a dataset at PATH: all of them or, if anything fails, none. A dataset as "
            "SOURCE becomes a folder of Parquet files."
        ),
    )
    parser.add_argument("source", help="a local file or folder")
    parser.add_argument("path", help="a directory, or a URL that fsspec knows")
    parser.add_argument(
        "--batch-size", default="auto", metavar="N", help="rows in a shard; by default as many as fill it"
    )
    parser.add_argument("--name-col", metavar="COLUMN", help="the column whose values name tensors, instead of batches")
    parser.add_argument("--columns", metavar="A,B", help="the columns to convert; all by default")
    parser.add_argument("--ragged", default="", metavar="A,B", help="more columns whose rows differ in length")
    parser.add_argument(
        "--dtype",
        metavar="DTYPE or A=DTYPE,...",
        help="the dtype of all columns of numbers, such as BF16, or of single columns",
    )
    parser.add_argument(
        "--shard-size", type=int, default=_SHARD_SIZE, metavar="MB", help="the size of a shard, from 50 to 1000"
    )
    parser.add_argument(
        "--mode", default="error", choices=("error", "append", "overwrite"), help="what to do if PATH is a dataset"
    )
    parser.add_argument("--index", action="store_true", help="write an index of all tensors")
    parser.add_argument("--processes", type=int, metavar="N", help="processes at a time; by default one for each core")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from safetensors_spark._convert.convert import convert, source_of
    from safetensors_spark._extras import require

    if _is_dataset(args.source):
        return _to_parquet(args)
    columns = _names(args.columns)
    source = source_of(args.source, columns)
    if type(source).__module__.endswith(("parquet", "hugging_face")):
        require("arrow", ("pyarrow",))
    with _bar() as (begin, advance):
        manifest = convert(source, args.path, _processes(args), _options(args), begin, advance, columns)
    shards = counted(len(manifest.shards), "shard")
    print(printable(f"{args.path}: {counted(manifest.samples, 'row')} in {shards}, {counted(manifest.bytes, 'byte')}."))
    return 0


def _is_dataset(source: str) -> bool:
    """Whether it is a dataset of ours, or a folder of partitions that are."""
    from safetensors_spark._files.look import look

    try:
        return Path(source).is_dir() and look(source).kind in ("dataset", "partitions")
    except FileNotFoundError:
        return False


def _to_parquet(args: argparse.Namespace) -> int:
    from safetensors_spark._convert.to_parquet import to_parquet
    from safetensors_spark._extras import require

    require("arrow", ("pyarrow",))
    given = (
        ("--batch-size", args.batch_size != "auto"),
        ("--name-col", args.name_col),
        ("--ragged", args.ragged),
        ("--dtype", args.dtype),
        ("--shard-size", args.shard_size != _SHARD_SIZE),
        ("--mode", args.mode != "error"),
        ("--index", args.index),
    )
    if unused := [name for name, is_given in given if is_given]:
        raise InvalidWriteError(
            f"{args.source} is a dataset, which becomes Parquet files of its own types, one for each shard: leave out "
            f"{', '.join(unused)}."
        )
    with _bar() as (begin, advance):
        rows = to_parquet(args.source, args.path, _processes(args), begin, advance, _names(args.columns))
    print(printable(f"{args.path}: {counted(rows, 'row')} in Parquet."))
    return 0


def _processes(args: argparse.Namespace) -> int:
    return (os.cpu_count() or 1) if args.processes is None else max(1, args.processes)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    common = {
        "mode": args.mode,
        "target_shard_size_mb": args.shard_size,
        "generate_index": args.index,
        "dtype": _dtypes(args.dtype),
    }
    if args.name_col:
        return common | {"name_col": args.name_col}
    size = int(args.batch_size) if args.batch_size.isdecimal() else args.batch_size
    return common | {"batch_size": size, "ragged": _names(args.ragged) or ()}


def _dtypes(text: str | None) -> str | dict[str, str] | None:
    """One dtype for all columns, or one for each that is named."""
    if text is None or "=" not in text:
        return text
    pairs = (one.rpartition("=") for one in _names(text) or ())
    return {name.strip(): dtype.strip() for name, _, dtype in pairs}


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text is not None else None


@contextmanager
def _bar() -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """What takes the number of parts, and what counts them: a bar on a terminal that rich draws; nothing in a pipe."""
    if not (sys.stderr.isatty() and find_spec("rich")):
        yield (lambda _: None), (lambda _: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield (lambda total: bar.update(task, total=total)), (lambda count: bar.advance(task, count))
