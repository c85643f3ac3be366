"""Rules that make a chain of operations cheaper, and leave its rows as they are.

Each rule is a function of a chain. What is behind a function is not moved before it: nobody can see into a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._expression import all_of, columns_of
from safetensors_spark.pipeline._operations import FilterExpression, Load, MapShard, Operation, Select
from safetensors_spark.pipeline._reductions import is_count

Chain = tuple[Operation, ...]


def merge_filters(chain: Chain) -> Chain:
    """Two filters by expressions, one after the other, are one."""
    merged: list[Operation] = []
    for operation in chain:
        last = merged[-1] if merged else None
        if isinstance(operation, FilterExpression) and isinstance(last, FilterExpression):
            merged[-1] = FilterExpression(last.expression & operation.expression)
        else:
            merged.append(operation)
    return tuple(merged)


def push_filters(chain: Chain) -> Chain:
    """A reader drops what a filter behind it drops, also behind a selection of columns.

    Raises `PipelineError` for a filter of a column that was not selected.
    """
    for place, operation in enumerate(chain):
        if not isinstance(operation, Load):
            continue
        behind = place + 1
        while behind < len(chain) and isinstance(chain[behind], Select):
            behind += 1
        found = chain[behind] if behind < len(chain) else None
        if not isinstance(found, FilterExpression):
            continue
        kept = [one.columns for one in chain[place + 1 : behind] if isinstance(one, Select)]
        kept += [operation.columns] if operation.columns is not None else []
        for columns in kept:
            for name in sorted(columns_of(found.expression) - set(columns)):
                raise PipelineError(
                    f"`{found}` needs the column `{name}`, but only {', '.join(columns)} are left. Filter first, or "
                    "keep it."
                )
        known = [operation.filter] if operation.filter is not None else []
        load = replace(operation, filter=all_of([*known, found.expression]))
        return push_filters((*chain[:place], load, *chain[place + 1 : behind], *chain[behind + 1 :]))
    return chain


def push_columns(chain: Chain) -> Chain:
    """A reader makes records of the columns alone that are selected behind it."""
    for place, (operation, behind) in enumerate(pairwise(chain)):
        if isinstance(operation, Load) and isinstance(behind, Select):
            known = operation.columns
            if known is None or set(behind.columns) <= set(known):
                load = replace(operation, columns=behind.columns)
                return push_columns((*chain[:place], load, *chain[place + 2 :]))
    return chain


def push_counts(chain: Chain) -> Chain:
    """A reader makes records without columns of those that are only counted."""
    for place, (operation, behind) in enumerate(pairwise(chain)):
        if isinstance(operation, Load) and isinstance(behind, MapShard) and is_count(behind.function):
            return (*chain[:place], replace(operation, columns=()), *chain[place + 1 :])
    return chain


RULES: tuple[Callable[[Chain], Chain], ...] = (merge_filters, push_filters, push_columns, push_counts)


def optimized(chain: Chain) -> Chain:
    for rule in RULES:
        chain = rule(chain)
    return chain
