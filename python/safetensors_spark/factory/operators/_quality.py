"""Common code of the heuristic text filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Filter


class TextFilter(Filter):
    """Drops texts for which `reason` returns a reason. A null is dropped: it has no text."""

    field: str = Field(default="text", description="The text field.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return ["no text" if text is None else self.reason(text) for text in batch.column(self.field).to_pylist()]

    def reason(self, text: str) -> str | None:
        """Why a text is dropped; None if it is kept."""
        raise NotImplementedError


def shown(value: float) -> str:
    """A ratio as text, for reasons."""
    return f"{value:.3g}"


def repeated(parts: list[str]) -> tuple[int, int]:
    """How many of the parts occurred before, and how many characters these have."""
    if len(set(parts)) == len(parts):
        return 0, 0
    seen: set[str] = set()
    count = characters = 0
    for part in parts:
        if part in seen:
            count, characters = count + 1, characters + len(part)
        else:
            seen.add(part)
    return count, characters
