"""The fields that the factory itself adds to rows."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]

PREFIX = "__fdf__/"
DROPPED_BY = "__fdf__/dropped_by"
DROPPED_BECAUSE = "__fdf__/dropped_because"
REFINED_BY = "__fdf__/refined_by"
GENERATED_BY = "__fdf__/generated_by"
SCORES = "__fdf__/scores"
TAGS = "__fdf__/tags"
OPERATOR_VERSIONS = "__fdf__/operator_versions"

NAMES = pa.list_(pa.string())


def with_name(table: pa.Table, field: str, name: str, changed: pa.Array | None = None) -> pa.Table:
    """The table with a name added to a list of names in each row.

    Args:
        changed: for each row whether it gets the name; all by default.
    """
    before = table.column(field).to_pylist() if field in table.column_names else [None] * table.num_rows
    flags = changed.to_pylist() if changed is not None else [True] * table.num_rows
    lists = [[*(names or ()), name] if flag else names for names, flag in zip(before, flags, strict=True)]
    column = pa.array(lists, NAMES)
    if field in table.column_names:
        return table.set_column(table.column_names.index(field), field, column)
    return table.append_column(field, column)
