"""Types of Arrow's columns with other types inside."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa  # type: ignore[import-untyped]


def with_values(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with other types of values: its own, or those in its lists and structs."""
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(with_values(kind.value_type, change), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(with_values(kind.value_type, change))
    if pa.types.is_list(kind):
        return pa.list_(with_values(kind.value_type, change))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, with_values(one.type, change), one.nullable) for one in kind])
    return change(kind)
