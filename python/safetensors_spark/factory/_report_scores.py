"""How scores lie, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark.factory._frequent import Frequent
from safetensors_spark.factory._report_files import SHOWN, batches, is_text, reading, schema_of, short
from safetensors_spark.factory._report_parts import Histogram

# Bars of numbers, and texts that are told, and counted at a time.
_BINS, _TOLD, _COUNTED = 20, 20, 1000
_ROWS = 65_536


def histogram(files: Sequence[str], name: str) -> Histogram | None:
    """Of all values of a field, some at a time; None for one of another type than numbers, texts and truth values."""
    with reading(files[0]):
        kind = schema_of(files[0]).field(name).type
    if is_text(kind) or pa.types.is_boolean(kind):
        return _of_texts(files, name, is_text(kind))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    least, most, nulls = np.inf, -np.inf, 0
    for values, missing in _numbers(files, name):
        nulls += missing
        if len(values):
            least, most = min(least, values.min()), max(most, values.max())
    if least > most:
        return Histogram(name, (), (), nulls)
    # By halves: the range of the largest numbers is not a number.
    edges = np.linspace(least / 2, most / 2, _BINS + 1) * 2 if most > least else np.array([least, np.inf])
    counts = np.zeros(len(edges) - 1, np.int64)
    for values, _ in _numbers(files, name):
        counts += np.histogram(values, edges)[0]
    labels = [f"{edge:,.0f}" if abs(edge) >= 1000 else f"{edge:.4g}" for edge in edges[:-1]]
    return Histogram(name, tuple(labels), tuple(counts.tolist()), nulls)


def _numbers(files: Sequence[str], name: str) -> Iterator[tuple[Any, int]]:
    """Finite values, and how many are null or not finite."""
    for file in files:
        for batch in batches(file, [name], _ROWS):
            values = batch.column(0).drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
            finite = values[np.isfinite(values)]
            yield finite, batch.num_rows - len(finite)


def _of_texts(files: Sequence[str], name: str, are_texts: bool) -> Histogram:
    found = _counted(files, name, are_texts, None)
    if not found.is_exact:
        # Once more, and of those that are left alone: their counts are exact then.
        found = _counted(files, name, are_texts, frozenset(found.counts))
    nulls = found.counts.pop(None, 0)
    top = found.top(_TOLD)
    others = found.total - nulls - sum(rows for _, rows in top)
    return Histogram(name, tuple(short(value) for value, _ in top), tuple(rows for _, rows in top), nulls, others)


def _counted(files: Sequence[str], name: str, are_texts: bool, only: frozenset[Any] | None) -> Frequent:
    found = Frequent(_COUNTED)
    for file in files:
        for batch in batches(file, [name], _ROWS):
            column = batch.column(0)
            # No more than what is shown of a text tells it from others.
            values = pc.utf8_slice_codeunits(column, 0, 4 * SHOWN) if are_texts else column
            counts = {one["values"]: one["counts"] for one in values.value_counts().to_pylist()}
            kept = counts if only is None else {value: rows for value, rows in counts.items() if value in only}
            found.add(kept)
            found.total += sum(counts.values()) - sum(kept.values())
    return found
