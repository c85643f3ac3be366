"""The functions that datasets bring themselves: at the top of a module, so that they are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from safetensors_spark.pipeline._operations import ShardInfo


def keep_first(_: Any, rows: Iterator[Any]) -> Any:
    return next(rows)


def first_of_each(_: Any, rows: Iterator[Any]) -> Iterator[Any]:
    yield next(rows)


def count_rows(rows: Iterator[Any]) -> int:
    return sum(1 for _ in rows)


def only(reducer: Callable[[Iterator[Any]], Any]) -> Callable[[Iterator[Any], ShardInfo], Iterator[Any]]:
    """Of a shard the one value that the reducer makes; none of a shard without rows, of which `max` makes none."""
    return partial(_only, reducer)


def is_count(function: Any) -> bool:
    """Whether it counts the rows of a shard."""
    return isinstance(function, partial) and function.func is _only and function.args == (count_rows,)


def _only(reducer: Callable[[Iterator[Any]], Any], rows: Iterator[Any], _: ShardInfo) -> Iterator[Any]:
    for first in rows:
        yield reducer(chain([first], rows))
        return


def merged(left: Any, right: Any) -> Any:
    if right is None:
        return left
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        raise TypeError(
            f"rows of {type(left).__name__} and {type(right).__name__} have no fields: give sorted_merge_join a "
            "`combiner`"
        )
    return {**left, **right}
