"""Operators: what a stage does with its rows, in five kinds.

An operator gets a batch of Arrow and returns columns, or a mask, but never a table. The runtime builds the table from
what it returns, so a score cannot drop a row and a filter cannot add a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["score", "evaluator", "filter", "refiner", "generator"]

Columns = Mapping[str, Any]


class Operator(BaseModel):
    """An operator with its parameters: immutable, and equal to others with the same parameters.

    Subclass one of the five kinds below, not this class.

    Attributes:
        type: the name of the class in configurations.
        version: changes when results change for the same parameters.
        id: of this instance, unique in its stage.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[Kind]
    type: ClassVar[str]
    version: ClassVar[str] = "1"

    id: str = Field(default="", description="Name of this instance, unique in its stage: by default type and number.")

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it gets."""
        raise NotImplementedError

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        """The fields that it returns, with their types; none of a filter."""
        return {}

    @property
    def files(self) -> tuple[str, ...]:
        """Files and folders that it reads beside its rows, such as a model: other content is another operator."""
        return ()

    def load(self) -> None:
        """Make what is expensive, such as a model, once in each process, before the first batch."""


class Score(Operator):
    """Adds fields to rows. It keeps every row."""

    kind = "score"

    def score(self, batch: pa.RecordBatch) -> Columns:
        """A column for each field of `writes`, as long as the batch."""
        raise NotImplementedError


class Evaluator(Operator):
    """Adds fields named `eval.*` or `__fdf__/eval_*`, which say how good rows are. It keeps every row."""

    kind = "evaluator"

    def evaluate(self, batch: pa.RecordBatch) -> Columns:
        """A column for each field of `writes`, as long as the batch."""
        raise NotImplementedError


class Filter(Operator):
    """Drops rows. It adds no field; the runtime keeps what it drops, with its id and the reason."""

    kind = "filter"

    def reasons(self, batch: pa.RecordBatch) -> pa.Array:
        """For each row why it is dropped, as text; null for a row that is kept."""
        raise NotImplementedError


class Refiner(Operator):
    """Changes fields that are there. It keeps every row."""

    kind = "refiner"

    def refine(self, batch: pa.RecordBatch) -> Columns:
        """A column for each field of `writes`, as long as the batch."""
        raise NotImplementedError


@dataclass(frozen=True)
class NewRows:
    """What a generator returns that makes rows.

    Attributes:
        parents: of each new row, the number of the row of the batch whose other fields it gets.
        columns: of the new rows, for each field of `writes`.
    """

    parents: Any
    columns: Columns


class Generator(Operator):
    """Makes new fields, or new rows, which stand behind the row that they are made of.

    Attributes:
        seed: of what is random. The same seed, row and version give the same result, wherever the row is processed.
    """

    kind = "generator"

    seed: int = Field(default=0, description="Seed of what is random.")

    def generate(self, batch: pa.RecordBatch) -> Columns | NewRows:
        """A column for each field of `writes`, as long as the batch; or new rows."""
        raise NotImplementedError
