"""Expressions of SQL, as texts of configurations."""

from __future__ import annotations

from typing import Any


def parsed(text: str) -> Any:
    """Daft's expression. Raises `ValueError` for a text that is none."""
    import daft

    try:
        # Else what stands behind the expression is ignored.
        return daft.sql_expr(f"({text}\n)")
    except Exception as error:
        # Its classes have no common one.
        raise _none(text, error) from None


def columns_of(text: str) -> dict[str, str]:
    """The columns that an expression has: by Daft's names, those of the rows. Raises `ValueError` for a text that is
    none.
    """
    from daft.expressions.visitor import ExpressionVisitor

    class Columns(ExpressionVisitor[None]):
        def __init__(self) -> None:
            self.names: set[str] = set()

        def visit_col(self, name: str) -> None:
            self.names.add(name)

        def visit_lit(self, value: Any) -> None:
            """It has no column."""

        def visit_alias(self, expr: Any, alias: str) -> None:
            self.visit(expr)

        def visit_cast(self, expr: Any, dtype: Any) -> None:
            self.visit(expr)

        def visit_try_cast(self, expr: Any, dtype: Any) -> None:
            self.visit(expr)

        def visit_coalesce(self, args: list[Any]) -> None:
            self.visit_function("coalesce", args)

        def visit_function(self, name: str, args: list[Any]) -> None:
            for one in args:
                if isinstance(one, list):
                    self.visit_function(name, one)
                else:
                    self.visit(one)

    found = Columns()
    try:
        found.visit(parsed(text))
    except ValueError as error:
        raise _none(text, error) from None
    return {name: _field(name) for name in sorted(found.names)}


def _field(name: str) -> str:
    # Daft keeps the quotes of a name.
    if name[0] == name[-1] and name[0] in '"`':
        return name[1:-1]
    # A field of a struct.
    return name.partition(".")[0]


def _none(text: str, error: Exception) -> ValueError:
    if "is no expression of SQL" in str(error):
        return ValueError(str(error))
    lines = [line.removeprefix("REASON: ") for line in str(error).splitlines() if line.strip(" ^")]
    return ValueError(f"`{text}` is no expression of SQL: {lines[-1] if lines else type(error).__name__}")
