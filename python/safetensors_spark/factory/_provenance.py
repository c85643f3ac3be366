"""What each row tells of its way, where a stage is asked for it: scores, tags, and versions of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark.factory._fields import DROPPED_BY, OPERATOR_VERSIONS, SCORES, TAGS
from safetensors_spark.factory._operator import Evaluator, Operator, Score
from safetensors_spark.factory._pipeline import Stage

_SCORE = pa.struct([("field", pa.string()), ("value", pa.float64())])
_VERSION = pa.struct([("operator", pa.string()), ("version", pa.string())])

# Fields of Hugging Face's library have no maps.
FIELDS = {SCORES: pa.list_(_SCORE), TAGS: pa.list_(pa.string()), OPERATOR_VERSIONS: pa.list_(_VERSION)}


def with_provenance(table: pa.Table, stage: Stage) -> pa.Table:
    """The table with the fields of `FIELDS`, to which entries of earlier stages belong.

    Args:
        table: rows that are kept, or that were dropped: those have not passed what is behind their operator.
    """
    rows = np.arange(table.num_rows)
    passed = _passed(table, stage.operators)
    scores: list[Any] = []
    tags: list[Any] = []
    versions = []
    for place, operator in enumerate(stage.operators):
        some = rows[passed > place]
        names = pa.array([f"{stage.name}/{operator.id}"] * len(some), pa.string())
        numbers = pa.array([operator.version] * len(some), pa.string())
        versions.append((some, pa.StructArray.from_arrays([names, numbers], fields=list(_VERSION))))
        if not isinstance(operator, Score | Evaluator):
            continue
        for name in operator.writes:
            if name in table.column_names:
                _add(name, table.column(name), scores, tags)
    return _with(_with(_with(table, SCORES, scores), TAGS, tags), OPERATOR_VERSIONS, versions)


def _passed(table: pa.Table, operators: Sequence[Operator]) -> Any:
    """How many of the operators have got each row."""
    if DROPPED_BY not in table.column_names:
        return np.full(table.num_rows, len(operators))
    places = {operator.id: place for place, operator in enumerate(operators, 1)}
    return np.array([places[name] for name in table.column(DROPPED_BY).to_pylist()], np.int64)


def _add(name: str, column: pa.ChunkedArray, scores: list[Any], tags: list[Any]) -> None:
    """The entries of a score's field: numbers are scores, texts and truth values are tags."""
    types, kind = pa.types, column.type
    rows = np.flatnonzero(pc.is_valid(column).to_numpy())
    values = column.drop_null().combine_chunks()
    if types.is_integer(kind) or types.is_floating(kind):
        names = pa.array([name] * len(rows), pa.string())
        scores.append(
            (rows, pa.StructArray.from_arrays([names, values.cast(pa.float64(), False)], fields=list(_SCORE)))
        )
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind):
        tags.append((rows, pc.binary_join_element_wise(pa.scalar(name), values.cast(pa.string()), "=")))


def _with(table: pa.Table, name: str, entries: Sequence[tuple[Any, pa.Array]]) -> pa.Table:
    """The table with a list in each row: what it had, and the entries, of which each has rows and values."""
    kind, count = FIELDS[name], table.num_rows
    parts = [(np.empty(0, np.int64), pa.array([], kind.value_type)), *entries]
    if name in table.column_names:
        before = table.column(name).combine_chunks().cast(kind)
        parts[0] = pc.list_parent_indices(before).to_numpy(), before.flatten()
    rows = np.concatenate([some for some, _ in parts])
    values = pa.concat_arrays([some for _, some in parts])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(
        pa.array(offsets), values.take(pa.array(np.argsort(rows, kind="stable"))), type=kind
    )
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, lists)
    return table.append_column(name, lists)
