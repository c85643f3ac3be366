"""Hooks: what is told while a pipeline runs. They see it, and change nothing of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True)
class StageStart:
    """A stage begins, also one of which nothing is left to make.

    Attributes:
        run_id: of the run, as in the manifests of stages that it makes.
        folder: of the stage.
        shards: of its input.
    """

    pipeline: str
    stage: str
    run_id: str
    folder: str
    shards: int


@dataclass(frozen=True)
class PartitionEnd:
    """This run has made a shard of a stage: its files are there, and the stage's manifest does not name them yet.

    Attributes:
        shard: its number in the input of the stage.
        rows_in: rows that it was made of.
        rows_out: rows that are left.
        paths: of the Parquet files of rows that are left; none where no row is.
        dropped_paths: of the Parquet files of rows that were dropped.
        seconds: that its task took.
    """

    pipeline: str
    stage: str
    run_id: str
    shard: int
    rows_in: int
    rows_out: int
    paths: tuple[str, ...]
    dropped_paths: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class StageFiles:
    """All shards of a stage are there, and its manifest is about to be written.

    Attributes:
        folder: of the stage.
        paths: of the Parquet files of rows that are left, in their order, also those that earlier runs have made.
    """

    pipeline: str
    stage: str
    run_id: str
    folder: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class StageEnd:
    """A stage is whole.

    Attributes:
        folder: of the stage.
        shards_made: how many shards this run has made; 0 where all were there.
        seconds: from its start.
        manifest: a copy of the stage's manifest.
    """

    pipeline: str
    stage: str
    run_id: str
    folder: str
    shards_made: int
    seconds: float
    manifest: dict[str, Any]


class Hook(BaseModel):
    """Is told how a run proceeds. Subclass it, and define those of the methods that you need.

    Fields are its options, as those of operators; what changes is kept in fields, or in a `PrivateAttr` of pydantic.
    A hook stays in the process that has called `run`, and is called there between tasks: while it works, no further
    task begins, and where it hangs, the run does. What it raises is one warning, and the run goes on.

    Attributes:
        type: the name of the class in configurations.
        name: of this instance, in warnings.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    type: ClassVar[str] = ""

    name: str = Field(default="", description="Name of this instance, in warnings: by default the type.")

    def on_stage_start(self, event: StageStart) -> None:
        """A stage begins."""

    def on_partition_end(self, event: PartitionEnd) -> None:
        """A shard was made. Shards come in the order in which they are made; those of earlier runs do not come."""

    def profiles(self, event: StageFiles) -> Iterable[str]:
        """Paths of what it has written about a stage, within the stage's folder, such as `profiles/mine.bin`.

        They begin with `profiles/`. The stage's manifest names them, and files in that folder which it does not name
        are deleted.
        """
        return ()

    def on_stage_end(self, event: StageEnd) -> None:
        """A stage is whole. Not called of a stage that fails."""

    def __str__(self) -> str:
        return self.name or self.type or type(self).__name__
