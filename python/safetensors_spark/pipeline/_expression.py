"""Expressions of columns: `col("score") > 0.5`.

An expression has one meaning and two ways to compute it: of a record, and of Arrow's columns. It is SQL's: what is
compared with null is null, and a filter keeps the records for which it is true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# How an operation is written, and what it makes of values that are not null.
_BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "equal": ("==", operator.eq),
    "not_equal": ("!=", operator.ne),
    "less": ("<", operator.lt),
    "less_equal": ("<=", operator.le),
    "greater": (">", operator.gt),
    "greater_equal": (">=", operator.ge),
    "add": ("+", operator.add),
    "subtract": ("-", operator.sub),
    "multiply": ("*", operator.mul),
    "divide": ("/", lambda left, right: left / right if right else None),
}
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@dataclass(frozen=True, eq=False, repr=False)
class Expr:
    """An expression; `col` and `lit` make the first ones.

    Combine expressions by `&`, `|` and `~`: Python's `and`, `or` and `not` cannot be taken over.
    """

    operation: str
    arguments: tuple[Any, ...]

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return _binary("equal", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return _binary("not_equal", self, other)

    def __lt__(self, other: Any) -> Expr:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Expr:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _binary("greater_equal", self, other)

    def __add__(self, other: Any) -> Expr:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _binary("divide", other, self)

    def __neg__(self) -> Expr:
        return Expr("negate", (self,))

    def __and__(self, other: Any) -> Expr:
        return _binary("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _binary("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return _binary("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _binary("or", other, self)

    def __invert__(self) -> Expr:
        return Expr("not", (self,))

    def __getitem__(self, name: str) -> Expr:
        """A field of a struct."""
        if not isinstance(name, str):
            raise TypeError(f"{self}[...] takes the name of a field, not {type(name).__name__}")
        return Expr("field", (self, name))

    def is_null(self) -> Expr:
        return Expr("is_null", (self,))

    def is_not_null(self) -> Expr:
        return ~self.is_null()

    def isin(self, values: Collection[Any]) -> Expr:
        """Whether it is one of the values, none of which may be None; null for null."""
        listed = tuple(values)
        if None in listed:
            raise ValueError(f"{self}.isin: None is equal to nothing; add `| {self}.is_null()`")
        return Expr("isin", (self, listed))

    def __bool__(self) -> bool:
        raise TypeError(f"{self} has no truth value: combine expressions by `&`, `|` and `~`, each side in parentheses")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self} is not iterable")

    __hash__ = object.__hash__

    def evaluate(self, record: Mapping[str, Any]) -> Any:
        """The value for one record; a column that the record lacks is null."""
        return of_rows(self)(record)

    def __repr__(self) -> str:
        match self.operation, self.arguments:
            case "column", (name,):
                return str(name) if str(name).isidentifier() else f"col({name!r})"
            case "literal", (value,):
                return repr(value)
            case "field", (of, name):
                return f"{_nested(of)}[{name!r}]"
            case "is_null", (of,):
                return f"{_nested(of)} is null"
            case "isin", (of, values):
                return f"{_nested(of)} in {values!r}"
            case "not", (of,):
                return f"~{_nested(of)}"
            case "negate", (of,):
                return f"-{_nested(of)}"
            case "and" | "or" as operation, (left, right):
                return f"{_nested(left)} {'&' if operation == 'and' else '|'} {_nested(right)}"
            case operation, (left, right):
                return f"{_nested(left)} {_BINARY[operation][0]} {_nested(right)}"
        raise AssertionError(self.operation)


def col(name: str) -> Expr:
    """The column of that name."""
    if not isinstance(name, str):
        raise TypeError(f"col takes a name, not {type(name).__name__}")
    return Expr("column", (name,))


def lit(value: Any) -> Expr:
    """A value: None, a boolean, a number, text, bytes, a date or a time."""
    if isinstance(value, Expr):
        return value
    return Expr("literal", (value,))


def columns_of(expression: Expr) -> set[str]:
    """The names of the columns that it needs."""
    if expression.operation == "column":
        return {expression.arguments[0]}
    found = (columns_of(argument) for argument in expression.arguments if isinstance(argument, Expr))
    return set().union(*found)


def conjuncts(expression: Expr) -> list[Expr]:
    """What must all be true for it to be true."""
    if expression.operation == "and":
        return [part for side in expression.arguments for part in conjuncts(side)]
    return [expression]


def all_of(expressions: Collection[Expr]) -> Expr | None:
    """Their conjunction; None of nothing."""
    found: Expr | None = None
    for expression in expressions:
        found = expression if found is None else found & expression
    return found


def of_rows(expression: Expr) -> Callable[[Mapping[str, Any]], Any]:
    """The function that computes it of a record."""
    operation, arguments = expression.operation, expression.arguments
    if operation == "column":
        name = arguments[0]
        return lambda record: record.get(name)
    if operation == "literal":
        value = arguments[0]
        return lambda _: value
    of = of_rows(arguments[0])
    if operation == "field":
        return _field(of, arguments[1])
    if operation == "is_null":
        return lambda record: of(record) is None
    if operation == "isin":
        return _isin(of, arguments[1])
    if operation == "not":
        return lambda record: None if (value := of(record)) is None else not value
    if operation == "negate":
        return lambda record: None if (value := of(record)) is None else -value
    other = of_rows(arguments[1])
    if operation == "and":
        return _and(of, other)
    if operation == "or":
        return _or(of, other)
    return _both(_BINARY[operation][1], of, other, arguments[1])


_Rows = Callable[[Mapping[str, Any]], Any]


def keeps_of(expression: Expr) -> Callable[[Mapping[str, Any]], Any]:
    """Whether a filter keeps a record. As with filters one after the other, what is not true ends it, null too."""
    parts = [of_rows(part) for part in conjuncts(expression)]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda record: first(record) and second(record)
    return lambda record: all(part(record) for part in parts)


def _both(function: Callable[[Any, Any], Any], left: _Rows, right: _Rows, second: Expr) -> _Rows:
    if second.operation == "literal" and second.arguments[0] is not None:
        # The usual case, at half the time.
        constant = second.arguments[0]
        return lambda record: None if (value := left(record)) is None else function(value, constant)

    def compute(record: Mapping[str, Any]) -> Any:
        first, other = left(record), right(record)
        return None if first is None or other is None else function(first, other)

    return compute


def _and(left: _Rows, right: _Rows) -> _Rows:
    def compute(record: Mapping[str, Any]) -> Any:
        first = left(record)
        if first is not None and not first:
            return False
        other = right(record)
        if other is not None and not other:
            return False
        return None if first is None or other is None else True

    return compute


def _or(left: _Rows, right: _Rows) -> _Rows:
    def compute(record: Mapping[str, Any]) -> Any:
        first = left(record)
        if first:
            return True
        other = right(record)
        if other:
            return True
        return None if first is None or other is None else False

    return compute


def _field(of: _Rows, name: str) -> _Rows:
    def compute(record: Mapping[str, Any]) -> Any:
        struct = of(record)
        return None if struct is None else struct.get(name)

    return compute


def _isin(of: _Rows, values: tuple[Any, ...]) -> _Rows:
    try:
        known: Collection[Any] = frozenset(values)
    except TypeError:
        known = values

    def compute(record: Mapping[str, Any]) -> Any:
        value = of(record)
        try:
            return None if value is None else value in known
        except TypeError:
            # A list has no hash.
            return value in values

    return compute


def _binary(operation: str, left: Any, right: Any) -> Expr:
    return Expr(operation, (lit(left), lit(right)))


def _nested(expression: Expr) -> str:
    simple = expression.operation in ("column", "literal", "field", "not")
    return repr(expression) if simple else f"({expression!r})"
