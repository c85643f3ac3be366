"""Rows for which an expression is true."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, field_validator

from safetensors_spark.factory._expressions import columns_of, truth_of
from safetensors_spark.factory._operator import Filter


class ExpressionFilter(Filter):
    """Keeps the rows for which an SQL expression is true, such as `word_count > 50 AND language = 'en'`.

    It refers to the fields of the rows; names with characters other than letters, digits and `_` need double quotes,
    and a field of a struct is `struct.field`. As in SQL, a row for which the expression is null is dropped. Daft
    evaluates it, and its documentation lists the functions; functions of several rows, such as sums, are errors.
    """

    type = "expression_filter"

    expression: str = Field(description="An SQL expression whose value is true or false.")

    @field_validator("expression")
    @classmethod
    def _is_one(cls, value: str) -> str:
        columns_of(value)
        return value

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(sorted({*columns_of(self.expression).values()}))

    def reasons(self, batch: pa.RecordBatch) -> Any:
        keeps = truth_of(self.expression, batch, self.id)
        return [None if kept else f"not {self.expression}" for kept in keeps.to_pylist()]
