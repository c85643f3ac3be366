"""`safetensors-spark jar-path`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from safetensors_spark._spark.jar import jar_path

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "jar-path",
        help="print the path of the connector's jar",
        description='Print the path of the connector\'s jar, for: spark-submit --jars "$(safetensors-spark jar-path)"',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    print(jar_path())
    return 0
