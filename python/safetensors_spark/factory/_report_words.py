"""Cells and sentences that a report has in the terminal, and on its page."""

from __future__ import annotations

from safetensors_spark.factory._report_parts import Bucket, OperatorReport, StageReport

BUCKET_COLUMNS = ("rows", "kept", "share wanted", "share kept", "ratio wanted", "ratio")


def speed_of(one: OperatorReport) -> tuple[str, str]:
    """The seconds of an operator, and its rows in a second; nothing where they are not known."""
    speed = "" if one.rows_per_second is None else f"{one.rows_per_second:,.0f}"
    return "" if one.seconds is None else f"{one.seconds:,.2f}", speed


def timing_text(stage: StageReport) -> str:
    """What the seconds of a stage are of."""
    timing = stage.timing
    if timing is None:
        return ""
    some = "all shards" if timing.shards == timing.of else f"{timing.shards:,} of {timing.of:,} shards"
    compared = f" Before, rows were compared in {timing.compare_seconds:,.2f}." if timing.compare_seconds else ""
    return (
        f"Seconds of {some}, of all workers together: {timing.seconds:,.2f}, of these {timing.other_seconds:,.2f} to "
        f"read, move and write rows.{compared}"
    )


def bucket_cells(one: Bucket) -> tuple[str, ...]:
    """The cells of a bucket, for `BUCKET_COLUMNS`."""
    shares = (one.keep, one.kept_share, one.ratio_wanted, one.ratio)
    return (f"{one.rows:,}", f"{one.kept:,}", *("" if share is None else f"{share:.4g}" for share in shares))
