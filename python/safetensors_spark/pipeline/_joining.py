"""Two sorted shards of the same number, joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._keys import order_of
from safetensors_spark.pipeline._operations import Join


def joined(left: Iterable[Any], right: Iterable[Any], join: Join) -> Iterator[Any]:
    """What the combiner makes of rows with equal keys. Of the right, memory holds the rows of one key."""
    on_the_right = groupby(_sorted(right, join.right_key, "right"), key=itemgetter(0))
    order, rows = _next(on_the_right)
    for key, row in _sorted(left, join.left_key, "left"):
        while order is not None and order < key:
            order, rows = _next(on_the_right)
        if order == key:
            for other in rows:
                yield join.combiner(row, other)
        elif join.keeps_left:
            yield join.combiner(row, None)
    for _ in on_the_right:
        # Keys that are not sorted are an error wherever they are.
        pass


def _next(groups: Iterator[tuple[Any, Iterator[tuple[Any, Any]]]]) -> tuple[Any, list[Any]]:
    for order, rows in groups:
        return order, [row for _, row in rows]
    return None, []


def _sorted(rows: Iterable[Any], key: Callable[[Any], Any], side: str) -> Iterator[tuple[Any, Any]]:
    before: Any = None
    for row in rows:
        order = order_of(key(row))
        if before is not None and order < before:
            raise PipelineError(
                f"sorted_merge_join: the rows on the {side} are not sorted: the key {key(row)!r:.100} comes after a "
                "greater one. Sort them by `group_by` with the same key."
            )
        before = order
        yield order, row
