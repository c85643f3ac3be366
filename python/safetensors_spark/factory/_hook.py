"""Hooks: observers of a running pipeline. They cannot change it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True)
class StageStart:
    """A stage begins, even if all its shards exist.

    Attributes:
        run_id: the id of the run, as in the manifests of stages that it computes.
        folder: the folder of the stage.
        shards: the number of shards of its input.
    """

    pipeline: str
    stage: str
    run_id: str
    folder: str
    shards: int


@dataclass(frozen=True)
class PartitionEnd:
    """This run has finished a shard of a stage: its files exist, but the stage's manifest does not name them yet.

    Attributes:
        shard: its number in the input of the stage.
        rows_in: the number of input rows.
        rows_out: the number of output rows.
        paths: the Parquet files of output rows; none if there are no rows.
        dropped_paths: the Parquet files of dropped rows.
        seconds: the duration of its task.
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
    """All shards of a stage are finished, and its manifest is about to be written.

    Attributes:
        folder: the folder of the stage.
        paths: the Parquet files of output rows, in their order, including those of earlier runs.
    """

    pipeline: str
    stage: str
    run_id: str
    folder: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class StageEnd:
    """A stage is complete.

    Attributes:
        folder: the folder of the stage.
        shards_made: the number of shards that this run computed; 0 if all existed.
        seconds: the time since its start.
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
    """Observes a run. Subclass it, and define the methods that you need.

    Fields are its options, like those of operators; keep mutable state in fields, or in a `PrivateAttr` of pydantic.
    A hook runs in the process that called `run`, between tasks: while it works, no further
    task begins, and if it hangs, the run hangs. If it raises, there is one warning, and the run continues.

    Attributes:
        type: the name of the class in configurations.
        name: the name of this instance, in warnings.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    type: ClassVar[str] = ""

    name: str = Field(default="", description="Name of this instance, in warnings: by default the type.")

    def on_stage_start(self, event: StageStart) -> None:
        """A stage begins."""

    def on_partition_end(self, event: PartitionEnd) -> None:
        """A shard is finished. Called in the order in which shards finish, not for shards of earlier runs."""

    def profiles(self, event: StageFiles) -> Iterable[str]:
        """Paths of the files that it wrote about a stage, within the stage's folder, such as `profiles/mine.bin`.

        They begin with `profiles/`. The stage's manifest names them, and files in that folder which it does not name
        are deleted.
        """
        return ()

    def on_stage_end(self, event: StageEnd) -> None:
        """A stage is complete. Not called for a stage that fails."""

    def __str__(self) -> str:
        return self.name or self.type or type(self).__name__
