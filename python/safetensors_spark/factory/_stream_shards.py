"""Whether the shards of a stream have its rows: `take(100)` of ten shards takes ten rows of each."""

from __future__ import annotations

from functools import partial
from typing import Any

# Iterables that have shards of their own, and those that pass on what each shard has.
_SHARDS = {"ExamplesIterable", "ArrowExamplesIterable", "MixedExamples"}
_BY_SHARD = {
    "FilteredExamplesIterable",
    "FormattedExamplesIterable",
    "MappedExamplesIterable",
    "RebatchedArrowExamplesIterable",
    "SelectColumnsIterable",
    "VerticallyConcatenatedMultiSourcesExamplesIterable",
}


def is_sum_of_shards(iterable: Any) -> bool:
    """Whether the rows of all shards, one after the other, are those of the iterable.

    So it is not where rows are counted or drawn, as by `take`, `skip`, `repeat`, `interleave_datasets`, `batch` and
    functions that get the numbers of rows; nor, as far as anybody knows, in iterables of other kinds.
    """
    if type(iterable).__name__ in _SHARDS:
        return True
    if type(iterable).__name__ not in _BY_SHARD or _knows_others(iterable):
        return False
    below = [iterable.ex_iterable] if hasattr(iterable, "ex_iterable") else iterable.ex_iterables
    return all(map(is_sum_of_shards, below))


def _knows_others(iterable: Any) -> bool:
    """Whether what is made of a row depends on how many were before it in its shard."""
    function = getattr(iterable, "function", None)
    function = function.func if isinstance(function, partial) else function
    # `batch` is a map of a function of the library itself.
    is_batch = str(getattr(function, "__module__", "")).startswith("datasets.")
    counts = getattr(iterable, "with_indices", False) or getattr(iterable, "drop_last_batch", False)
    return bool(counts) or (is_batch and getattr(iterable, "batched", False))
