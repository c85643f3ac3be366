"""`safetensors-spark doctor`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from safetensors_spark._commands import tables
from safetensors_spark._spark.doctor import Finding, examine

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands

_MARKS = {True: "ok", False: "no"}


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check whether Spark can use the connector here",
        description="Look at Java, PySpark, the jar and the extras; report what works, and how to fix what does not.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    diagnosis = examine()
    tables.show(tables.Table("Found", ("", "part", "found"), [_row(f) for f in diagnosis.parts]))
    tables.show(tables.Table("What works", ("", "use", "note"), [_row(f) for f in diagnosis.uses]))
    extras = [(_MARKS[extra.ok], extra.name, extra.found, extra.remedy) for extra in diagnosis.extras]
    tables.show(tables.Table("Extras", ("", "extra", "enables", "to install"), extras))
    remedies = [(finding.name, finding.remedy) for finding in diagnosis.findings if finding.remedy]
    if remedies:
        tables.show(tables.Table("To fix", ("for", "do"), remedies))
    print("Spark can use the connector here." if diagnosis.spark_works else "Spark cannot use the connector here.")
    return 0 if diagnosis.spark_works else 1


def _row(finding: Finding) -> tuple[str, str, str]:
    return _MARKS[finding.ok], finding.name, finding.found
