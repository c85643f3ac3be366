"""What a report tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Why rows were dropped, without the values of single rows, and some of them."""

    reason: str
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class OperatorReport:
    """Rows that an operator got, those that it left, and why it dropped the others.

    Attributes:
        rules: the most frequent ones.
        other_rows: that were dropped by other rules.
        seconds: in its calls, of all workers together, and of a deduplicator those to compare rows, by the clock; None
            if that is not known.
        rows_per_second: of one worker.
    """

    id: str
    rows_in: int
    rows_out: int
    rules: tuple[Rule, ...]
    other_rows: int = 0
    seconds: float | None = None
    rows_per_second: float | None = None


@dataclass(frozen=True)
class Histogram:
    """Of a field that a score wrote: how many rows have values from one edge to the next, or each of the most frequent
    texts.

    Attributes:
        nulls: rows without a value.
        others: rows with other texts.
    """

    field: str
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    nulls: int
    others: int = 0


@dataclass(frozen=True)
class Timing:
    """How long the last run took that has made shards of a stage, in seconds of all workers together.

    Attributes:
        shards: that it has made.
        of: how many there are.
        seconds: of their tasks.
        other_seconds: of these those beside operators: rows were read, moved and written.
        compare_seconds: in which rows of the whole dataset were compared, by the clock.
    """

    shards: int
    of: int
    seconds: float
    other_seconds: float
    compare_seconds: float


@dataclass(frozen=True)
class Bucket:
    """What a sample has kept of a bucket.

    Attributes:
        keep: the share of its rows that was to be kept.
        kept_share: the one that was; None of no rows.
        ratio_wanted: the bucket's share of all that the sample keeps, if each share were reached.
        ratio: the one that it has.
    """

    operator: str
    name: str
    rows: int
    kept: int
    keep: float
    kept_share: float | None
    ratio_wanted: float | None
    ratio: float | None


@dataclass(frozen=True)
class StageReport:
    """A stage."""

    name: str
    rows_in: int
    rows_out: int
    operators: tuple[OperatorReport, ...]
    scores: tuple[Histogram, ...]
    timing: Timing | None = None
    buckets: tuple[Bucket, ...] = ()
    profiles: tuple[str, ...] = ()
