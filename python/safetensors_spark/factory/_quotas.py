"""How many rows samples have kept of their buckets: what was wanted, and what was reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from safetensors_spark.factory._operator import Filter, Operator

# By operator and bucket: rows, and those of them that are kept.
Counts = dict[str, dict[str, list[int]]]

_DIGITS = 6


def quotas_of(operators: Sequence[Operator]) -> dict[str, dict[str, float]]:
    """The quotas of samples, by operator."""
    return {one.id: dict(one.quotas) for one in operators if isinstance(one, Filter) and one.quotas}


def new_counts(operators: Sequence[Operator]) -> Counts:
    return {name: {bucket: [0, 0] for bucket in quotas} for name, quotas in quotas_of(operators).items()}


def count(counts: Counts, found: Mapping[str, Counter[tuple[str, bool]]]) -> None:
    """Add the rows of a window."""
    for name, buckets in found.items():
        for (bucket, is_kept), rows in buckets.items():
            counts[name][bucket][0] += rows
            counts[name][bucket][1] += rows * is_kept


def reached(quotas: Mapping[str, Mapping[str, float]], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each bucket of each operator its rows, those that are kept, and shares.

    `keep` is the share of the bucket's rows that was to be kept, and `kept_share` the one that was. `ratio_wanted` is
    the share of the kept rows that the bucket would have if each `keep` were reached, and `ratio` the one that it has.

    Args:
        records: of shards, each with counts. Where one has none, an earlier version has made it, and nothing is told.
    """
    found: dict[str, Any] = {}
    for name, shares in quotas.items():
        if any(name not in record.get("buckets", {}) for record in records):
            continue
        counts = {
            bucket: [sum(record["buckets"][name][bucket][part] for record in records) for part in (0, 1)]
            for bucket in shares
        }
        wanted = sum(shares[bucket] * rows for bucket, (rows, _) in counts.items())
        left = sum(kept for _, kept in counts.values())
        found[name] = {
            bucket: {
                "rows": rows,
                "kept": kept,
                "keep": shares[bucket],
                "kept_share": _share(kept, rows),
                "ratio_wanted": _share(shares[bucket] * rows, wanted),
                "ratio": _share(kept, left),
            }
            for bucket, (rows, kept) in counts.items()
        }
    return found


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, _DIGITS) if whole else None
