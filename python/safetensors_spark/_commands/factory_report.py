"""`safetensors-spark factory report`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._commands import tables

if TYPE_CHECKING:
    from safetensors_spark.factory import Report
    from safetensors_spark.factory._report_parts import StageReport


def add_to(actions: Any) -> None:
    text = "Show a run: rows in and out by operator, why rows were dropped, and the distributions of scores."
    one = actions.add_parser("report", help="show the results of a run", description=text)
    one.add_argument("out", metavar="OUT", help="the folder of the run")
    one.add_argument("--html", metavar="FILE", help="write a page with plots, too, which needs no network")
    one.add_argument("--json", action="store_true", help="print the report as JSON instead")
    one.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from safetensors_spark.factory import report

    found = report(args.out)
    if args.html is not None:
        Path(args.html).write_text(found.to_html(), encoding="utf-8")
    if args.json:
        print(found.to_json())
    else:
        columns = ("stage", "operator", "rows in", "rows out", "seconds", "rows/s", "dropped", "because")
        tables.show(tables.Table(found.pipeline, columns, [*_rows(found)]))
        for stage in found.stages:
            _show_more(stage)
    return 0


def _show_more(stage: StageReport) -> None:
    from safetensors_spark.factory._report_words import BUCKET_COLUMNS, bucket_cells, timing_text

    if stage.buckets:
        rows = [(one.operator, one.name, *bucket_cells(one)) for one in stage.buckets]
        tables.show(tables.Table(f"{stage.name}: buckets of samples", ("operator", "bucket", *BUCKET_COLUMNS), rows))
    if stage.timing is not None:
        print(f"{stage.name}: {timing_text(stage)}")


def _rows(found: Report) -> Iterator[tuple[str, ...]]:
    from safetensors_spark.factory._report_words import speed_of

    for stage in found.stages:
        seconds = "" if stage.timing is None else f"{stage.timing.seconds:,.2f}"
        yield stage.name, "", f"{stage.rows_in:,}", f"{stage.rows_out:,}", seconds, "", "", ""
        for one in stage.operators:
            yield "", one.id, f"{one.rows_in:,}", f"{one.rows_out:,}", *speed_of(one), "", ""
            for rule in one.rules:
                yield *[""] * 6, f"{rule.rows:,}", rule.reason
            if one.other_rows:
                yield *[""] * 6, f"{one.other_rows:,}", "others"
