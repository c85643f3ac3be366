"""`safetensors-spark verify`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from safetensors_spark._commands import tables
from safetensors_spark._errors import counted, printable

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands
    from safetensors_spark._files.verify import Progress, Report


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="check a dataset, a checkpoint or a file for damage",
        description=(
            "Check headers by the official library's rules, and every byte of a dataset: lengths, checksums, tensors "
            "against the manifest, and the index against the shards. Exits with 1 if something is wrong."
        ),
    )
    parser.add_argument("path", help="a dataset, a folder or a file: a local path, or a URL that fsspec knows")
    parser.add_argument(
        "--workers", type=_number, default=min(8, os.cpu_count() or 1), metavar="N", help="files to read at a time"
    )
    parser.set_defaults(run=run)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of files, expected 1 or more")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from safetensors_spark._files.look import look
    from safetensors_spark._files.verify import verify_contents

    contents = look(args.path)
    with _progress(contents.bytes) as progress:
        report = verify_contents(contents, args.workers, progress)
    if report.faults:
        rows = [(fault.file, fault.what) for fault in report.faults]
        tables.show(tables.Table(f"{contents.location} is damaged", ("file", "what is wrong"), rows))
    for note in report.notes:
        print(printable(f"Note: {note}."))
    print(_summary(report))
    return 1 if report.faults else 0


def _summary(report: Report) -> str:
    entries = report.index_entries
    index = "" if entries is None else f", {counted(entries, 'entry', 'entries')} of the index"
    counts = (report.files, "file"), (report.tensors, "tensor"), (report.bytes, "byte")
    looked_at = ", ".join(counted(*one) for one in counts) + index
    return (
        f"{counted(len(report.faults), 'fault')} in {looked_at}." if report.faults else f"No faults found: {looked_at}."
    )


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on a terminal that rich draws; nothing in a pipe."""
    if not (sys.stderr.isatty() and find_spec("rich")):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    with Bar(
        BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
