"""The part of an expression that Arrow computes exactly as records do, for columns of known types.

Arrow prunes row groups by statistics, which leave NaN out; it casts integers to floats where they are compared; and it
knows types that become other objects in records. What might differ for such a reason stays with the rows.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.types as types  # type: ignore[import-untyped]

from safetensors_spark.pipeline._expression import COMPARISONS, Expr

_PYTHON = {
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
}
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


def in_arrow(expression: Expr, schema: pa.Schema) -> pc.Expression | None:
    """The same condition for Arrow's scans; None if that is not certain."""
    operation, arguments = expression.operation, expression.arguments
    if operation in ("and", "or"):
        left, right = (in_arrow(side, schema) for side in arguments)
        if left is None or right is None:
            return None
        return left & right if operation == "and" else left | right
    if operation == "not":
        # NaN is not in the statistics, and not less, nor equal: so its opposite would be pruned.
        of = in_arrow(arguments[0], schema)
        return None if of is None or _has_floats(arguments[0], schema) else ~of
    if operation == "is_null":
        found = _column(arguments[0], schema)
        # Arrow prunes row groups of dictionaries whose values are all null.
        return None if found is None or types.is_dictionary(found[1]) else found[0].is_null()
    if operation == "isin":
        found = _column(arguments[0], schema)
        if found is None or not arguments[1] or not all(is_comparable(found[1], value) for value in arguments[1]):
            return None
        if types.is_floating(found[1]) and 0.0 in arguments[1]:
            # Parquet's statistics have -0.0, which Arrow does not find among 0.0 when it drops row groups.
            return None
        # Null in a filter is as good as false; below `not` it is not.
        return pc.if_else(
            found[0].is_null(), pa.scalar(None, pa.bool_()), found[0].isin(pa.array(arguments[1], found[1]))
        )
    if operation in COMPARISONS:
        return _comparison(operation, arguments[0], arguments[1], schema)
    return None


def _comparison(operation: str, left: Expr, right: Expr, schema: pa.Schema) -> pc.Expression | None:
    operation, left, right = with_literal_last(operation, left, right)
    found = _column(left, schema)
    if found is None or right.operation != "literal":
        return None
    field, kind = found
    value = right.arguments[0]
    if value is None or not is_comparable(kind, value) or (operation == "not_equal" and types.is_floating(kind)):
        return None
    result: pc.Expression = _PYTHON[operation](field, pa.scalar(value, kind))
    return result


def with_literal_last(operation: str, left: Expr, right: Expr) -> tuple[str, Expr, Expr]:
    """The same comparison, with a value that was first as the second."""
    return (_MIRRORED[operation], right, left) if left.operation == "literal" else (operation, left, right)


def _column(expression: Expr, schema: pa.Schema) -> tuple[pc.Expression, pa.DataType] | None:
    """A column, or a field of a struct, and its type."""
    if expression.operation == "column":
        name = expression.arguments[0]
        place = schema.get_field_index(name)
        return None if place < 0 else (pc.field(name), schema.field(place).type)
    return None


def is_comparable(kind: pa.DataType, value: Any) -> bool:
    """Whether Arrow compares a column of the type with the value as Python does."""
    if types.is_boolean(kind):
        return isinstance(value, bool)
    if types.is_signed_integer(kind):
        return type(value) is int and -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1)
    if types.is_unsigned_integer(kind):
        return type(value) is int and 0 <= value < 2**kind.bit_width
    if types.is_float64(kind):
        return type(value) is float and not math.isnan(value)
    if types.is_string(kind) or types.is_large_string(kind):
        # Text that is no UTF-8 is in no column of Arrow's.
        return type(value) is str and _is_utf8(value)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return type(value) is bytes
    return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_floats(expression: Expr, schema: pa.Schema) -> bool:
    if expression.operation == "column":
        place = schema.get_field_index(expression.arguments[0])
        return place >= 0 and bool(types.is_floating(schema.field(place).type))
    return any(_has_floats(one, schema) for one in expression.arguments if isinstance(one, Expr))
