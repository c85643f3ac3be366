"""The part of an expression that Vortex's scans compute exactly as records do, for columns of known types.

Vortex orders floats totally: NaN is greater than all others, and -0.0 less than 0.0. So they stay with the rows.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.types as types  # type: ignore[import-untyped]
import vortex
import vortex.expr as of

from safetensors_spark.pipeline._arrow_expression import is_comparable, with_literal_last
from safetensors_spark.pipeline._expression import COMPARISONS, Expr

_COMPARED = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
# Each value is a comparison of its own.
_MANY = 50


def in_vortex(expression: Expr, schema: pa.Schema) -> Any:
    """The same condition for a scan; None if that is not certain."""
    kind, arguments = expression.operation, expression.arguments
    if kind in ("and", "or"):
        left, right = (in_vortex(side, schema) for side in arguments)
        if left is None or right is None:
            return None
        return left & right if kind == "and" else left | right
    if kind == "not":
        found = in_vortex(arguments[0], schema)
        return None if found is None else of.not_(found)
    if kind == "is_null" and _type(arguments[0], schema) is not None and hasattr(of, "is_null"):
        # Older versions do not have it.
        return of.is_null(of.column(arguments[0].arguments[0]))
    if kind == "isin" and 0 < len(arguments[1]) <= _MANY:
        compared = [_comparison("equal", arguments[0], value, schema) for value in arguments[1]]
        return None if any(one is None for one in compared) else reduce(operator.or_, compared)
    if kind in COMPARISONS:
        operation, left, right = with_literal_last(kind, *arguments)
        if right.operation == "literal" and right.arguments[0] is not None:
            return _comparison(operation, left, right.arguments[0], schema)
    return None


def _comparison(operation: str, column: Expr, value: Any, schema: pa.Schema) -> Any:
    kind = _type(column, schema)
    literal = None if kind is None or not is_comparable(kind, value) else _literal(kind, value)
    return None if literal is None else _COMPARED[operation](of.column(column.arguments[0]), literal)


def _type(expression: Expr, schema: pa.Schema) -> pa.DataType | None:
    """The type of a column, as Arrow's other files have it."""
    place = schema.get_field_index(expression.arguments[0]) if expression.operation == "column" else -1
    if place < 0:
        return None
    kind = schema.field(place).type
    if types.is_string_view(kind):
        return pa.string()
    return pa.binary() if types.is_binary_view(kind) else kind


def _literal(kind: pa.DataType, value: Any) -> Any:
    if types.is_boolean(kind):
        return of.literal(vortex.bool_(nullable=True), value)
    if types.is_signed_integer(kind):
        return of.literal(vortex.int_(kind.bit_width, nullable=True), value)
    if types.is_unsigned_integer(kind) and value < 2**63:
        return of.literal(vortex.uint(kind.bit_width, nullable=True), value)
    if types.is_string(kind):
        return of.literal(vortex.utf8(nullable=True), value)
    if types.is_binary(kind):
        return of.literal(vortex.binary(nullable=True), value)
    return None
