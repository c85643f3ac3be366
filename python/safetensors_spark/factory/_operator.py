"""Operators: the steps of a stage, in five kinds.

An operator gets an Arrow batch and returns columns, or a mask, but never a table. The runtime builds the table from
the result, so a score cannot drop a row and a filter cannot add a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, field_validator

from safetensors_spark.pipeline._fingerprint import fingerprint

Kind = Literal["score", "evaluator", "filter", "refiner", "generator"]

Columns = Mapping[str, Any]

# What says where an operator runs, and nothing of what it makes.
RESOURCES = frozenset({"gpus", "concurrency"})


class Operator(BaseModel):
    """An operator with its parameters: immutable, and equal to others with the same parameters.

    Subclass one of the five kinds below, not this class.

    Attributes:
        type: the name of the class in configurations.
        version: changes when results change for the same parameters.
        id: the id of this instance, unique in its stage.
        gpus: the GPUs of each process that runs it.
        concurrency: the number of actors that run it on Ray, during its stage.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[Kind]
    type: ClassVar[str]
    version: ClassVar[str] = "1"

    id: str = Field(default="", description="Name of this instance, unique in its stage: by default type and number.")
    gpus: float = Field(
        default=0, ge=0, description="GPUs of each actor on Ray, 0.5 for half of one; elsewhere of each worker."
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        description="How many actors it has on Ray. By default as many as there are GPUs for; without `gpus` none.",
    )

    @field_validator("gpus")
    @classmethod
    def _is_whole_or_a_part(cls, value: float) -> float:
        if value > 1 and value != int(value):
            raise ValueError(f"{value:g} is neither a part of a GPU nor a number of whole ones")
        return value

    @property
    def config(self) -> dict[str, Any]:
        """Everything that determines its results: type, version and parameters, as a manifest records them."""
        return {"type": self.type, "version": self.version} | self.model_dump(mode="json", exclude=set(RESOURCES))

    def __fingerprint__(self) -> str:
        return fingerprint([type(self), self.config, self.functions])

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it gets."""
        raise NotImplementedError

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        """The fields that it returns, with their types; none for a filter."""
        return {}

    @property
    def files(self) -> tuple[str, ...]:
        """Other files and folders that it reads, such as a model: if their content changes, the operator changes."""
        return ()

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """Functions of users that it calls, whose code counts as its own."""
        return ()

    def load(self) -> None:
        """Load expensive objects, such as a model, once in each process, before the first batch.

        Keep them in a private attribute (`_model: Any = PrivateAttr()`). Only workers load, on a copy of the operator.
        """


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
        """For each row the reason why it is dropped, as text; null for a row that is kept."""
        raise NotImplementedError

    @property
    def quotas(self) -> Mapping[str, float]:
        """Of a sample by buckets: by the bucket's name the share of its rows that is to be kept."""
        return {}

    def bucket_of(self, batch: pa.RecordBatch) -> Sequence[str]:
        """For each row the name of its bucket. Only asked where there are quotas, so that manifests tell shares."""
        raise NotImplementedError


@dataclass(frozen=True)
class Keys:
    """By what rows of a batch are compared.

    Attributes:
        rows: the row of each key, int64. A row may have several keys, or none, and then it is kept.
        keys: 128 bits each, uint64 of keys x 2, the first of them as good as random. Rows with one in common may be
            duplicates.
        signatures: of all rows of the batch, what tells whether rows with a common key are; None if the key does.
    """

    rows: Any
    keys: Any
    signatures: Any = None


class Deduplicator(Operator):
    """Drops rows that are duplicates of earlier rows anywhere in the dataset. It is the first operator of its stage.

    In each group of connected duplicates, the first row is kept.
    """

    kind = "filter"

    def keys(self, batch: pa.RecordBatch) -> Keys:
        """The keys of a batch's rows."""
        raise NotImplementedError

    def pairs(self, keys: Any, places: Any) -> Any:
        """Pairs of places of rows that have a key in common, the later one first: int64 of pairs x 2.

        Not all of them: each row with the first and with the one before, so that a million equal rows are two million
        pairs.
        """
        order = np.lexsort((places, keys[:, 1], keys[:, 0]))
        keys, places = keys[order], places[order]
        is_next = np.concatenate([[False], (keys[1:] == keys[:-1]).all(axis=1)])
        number = np.arange(len(keys))
        first = np.maximum.accumulate(np.where(is_next, 0, number))
        later = number[is_next]
        pairs = np.concatenate([np.stack([later, first[later]], 1), np.stack([later, later - 1], 1)])
        # A row may have one key twice.
        found = places[pairs]
        return found[found[:, 0] != found[:, 1]]

    def are_similar(self, some: Any, others: Any) -> Any:
        """For pairs of signatures, whether their rows are duplicates."""
        raise NotImplementedError


class Refiner(Operator):
    """Changes existing fields. It keeps every row."""

    kind = "refiner"

    def refine(self, batch: pa.RecordBatch) -> Columns:
        """A column for each field of `writes`, as long as the batch."""
        raise NotImplementedError


@dataclass(frozen=True)
class NewRows:
    """The result of a generator that makes rows.

    Attributes:
        parents: for each new row, the number of the row of the batch from which it gets its other fields.
        columns: the columns of the new rows, for each field of `writes`.
    """

    parents: Any
    columns: Columns


class Generator(Operator):
    """Makes new fields, or new rows, which follow the row that they are made from.

    Attributes:
        seed: the random seed. The same seed, row and version give the same result, wherever the row is processed.
    """

    kind = "generator"

    seed: int = Field(default=0, description="Seed of what is random.")

    def generate(self, batch: pa.RecordBatch) -> Columns | NewRows:
        """A column for each field of `writes`, as long as the batch; or new rows."""
        raise NotImplementedError
