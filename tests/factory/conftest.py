"""Operators and datasets of tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from safetensors_spark.factory import Filter, Generator, NewRows, Refiner
from safetensors_spark.pipeline import Backend, create_backend


class Longer(Filter):
    """Drops numbers up to a limit."""

    type = "longer"
    limit: int
    field: str = "n"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return [None if n is not None and n > self.limit else f"{n} <= {self.limit}" for n in batch[0].to_pylist()]


class Upper(Refiner):
    type = "upper"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"text": pa.string()}

    def refine(self, batch: pa.RecordBatch) -> Any:
        return {"text": [text and text.upper() for text in batch["text"].to_pylist()]}


class Halves(Generator):
    """Makes a new row of each word behind the first one."""

    type = "halves"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"half": pa.string()}

    def generate(self, batch: pa.RecordBatch) -> NewRows:
        found = [(row, word) for row, text in enumerate(batch["text"].to_pylist()) for word in (text or "").split()[1:]]
        return NewRows([row for row, _ in found], {"half": [word for _, word in found]})


@pytest.fixture
def rows() -> Any:
    return datasets.Dataset.from_dict({"n": list(range(1000)), "text": [f"a{n} b{n}" for n in range(1000)]})


@pytest.fixture
def sync() -> Backend:
    return create_backend("sync", progress=False)
