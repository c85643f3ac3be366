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
    """Rows that an operator got, those that it left, and why it dropped the others."""

    id: str
    rows_in: int
    rows_out: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Histogram:
    """Of a field that a score wrote: how many rows have values from one edge to the next, or each of the most frequent
    texts.
    """

    field: str
    labels: tuple[str, ...]
    rows: tuple[int, ...]
    nulls: int


@dataclass(frozen=True)
class StageReport:
    """A stage."""

    name: str
    rows_in: int
    rows_out: int
    operators: tuple[OperatorReport, ...]
    scores: tuple[Histogram, ...]
