"""Expressions of SQL, as texts of configurations."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._runner import run_here


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


def truth_of(text: str, batch: pa.RecordBatch, operator: str) -> pa.Array:
    """For each row whether the expression is true, or null. Raises `ContractError`, which names the operator."""
    import daft

    run_here()
    columns = {name: _values(name, batch, operator) for name in columns_of(text)}
    # An expression may have no column.
    rows = daft.from_arrow(pa.table({"": pa.nulls(len(batch)), **columns}))
    try:
        found = rows.select(parsed(text).alias("is_true")).to_arrow().column("is_true")
    except daft.exceptions.DaftCoreException as error:
        raise ContractError(f"{operator}: `{text}` cannot be computed: {error}") from None
    if not pa.types.is_boolean(found.type):
        raise ContractError(f"{operator}: `{text}` is {found.type}, expected true or false.")
    whole = found.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _values(name: str, batch: pa.RecordBatch, operator: str) -> pa.Array:
    """The values that Daft takes for a name: of a struct's field, a column of their own."""
    found = batch.column(_field(name))
    if name[0] == name[-1] and name[0] in '"`':
        return found
    parent, *path = name.split(".")
    for step in path:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(step) < 0:
            has = ", ".join(one.name for one in found.type.fields) if pa.types.is_struct(found.type) else "no fields"
            raise ContractError(f"{operator}: `{name}` does not exist: `{parent}` has {has}.")
        # Where the struct is null, the field is, too.
        found, parent = pc.struct_field(found, step), f"{parent}.{step}"
    return found


def _field(name: str) -> str:
    # Daft keeps the quotes of a name.
    if name[0] == name[-1] and name[0] in '"`':
        return name[1:-1]
    # A field of a struct.
    return name.partition(".")[0]


def _none(text: str, error: Exception) -> ValueError:
    if "is not an expression of SQL" in str(error):
        return ValueError(str(error))
    lines = [line.removeprefix("REASON: ") for line in str(error).splitlines() if line.strip(" ^")]
    return ValueError(f"`{text}` is not an expression of SQL: {lines[-1] if lines else type(error).__name__}")
