"""Rows for which an expression is true."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, field_validator

from safetensors_spark.factory._expressions import columns_of, truth_of
from safetensors_spark.factory._operator import Filter


class ExpressionFilter(Filter):
    """Keeps the rows for which an expression of SQL is true, such as `word_count > 50 AND language = 'en'`.

    The fields are those of the rows; names with other characters than letters, digits and `_` stand in double quotes,
    and a field of a struct is `struct.field`. As in SQL, an expression that is null keeps no row. Daft computes it,
    whose documentation tells the functions that there are; those that need more than one row, such as sums, are errors.
    """

    type = "expression_filter"

    expression: str = Field(description="An expression of SQL whose value is true or false.")

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
