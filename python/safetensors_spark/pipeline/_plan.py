"""The plan of a pipeline: its shards, and the stages that they pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from safetensors_spark import _html
from safetensors_spark._errors import PipelineError, counted
from safetensors_spark.pipeline._dataset import Dataset
from safetensors_spark.pipeline._operations import (
    Commit,
    Exchange,
    Gather,
    GroupBy,
    Join,
    Load,
    Operation,
    Reshard,
    RowOperation,
    Write,
    name_of,
)
from safetensors_spark.pipeline._rules import optimized
from safetensors_spark.pipeline._source import SourceShard, with_versions
from safetensors_spark.pipeline._split import split_files

_EXCHANGES = (GroupBy, Reshard, Gather, Commit, Join)


@dataclass(frozen=True)
class Stage:
    """What one task does with a shard.

    Attributes:
        begin: how it gets rows of the stage before; None for the first stage.
        operations: one after the other, on one row at a time.
        end: the group_by that begins the next stage, for which rows are divided by key.
        shards: how many there are.
        right: of a join, the plan of the other side.
    """

    begin: Exchange | None
    operations: tuple[RowOperation, ...]
    end: GroupBy | None
    shards: int
    right: Plan | None = None

    @property
    def name(self) -> str:
        parts = [str(self.begin)] if self.begin is not None else []
        return " | ".join([*parts, *map(str, self.operations)]) or "rows as they are"

    @property
    def write(self) -> Write | None:
        """What it writes, if that is its end."""
        last = self.operations[-1] if self.operations else None
        return last if isinstance(last, Write) else None

    @property
    def leaves_files(self) -> bool:
        """Whether what it makes is seen by others than the next stage."""
        return self.write is not None or isinstance(self.begin, Commit)


@dataclass(frozen=True)
class Plan:
    """Shards of the source, and the stages that they pass, each of which is done before the next one begins."""

    source: str
    shards: tuple[SourceShard, ...]
    stages: tuple[Stage, ...]
    bytes: int

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.lines(str(self))

    def lines(self) -> list[str]:
        head = f"source: {self.source}: {counted(len(self.shards), 'shard')}"
        lines = [f"{head}, {counted(self.bytes, 'byte')}" if self.bytes else head]
        for number, stage in enumerate(self.stages, 1):
            if stage.right is not None:
                lines += [f"  right: {line}" for line in stage.right.lines()]
            lines.append(f"stage {number}: {counted(stage.shards, 'shard')}: {stage.name}")
            if stage.end is not None:
                lines.append(f"  divided by {name_of(stage.end.key)}")
        return lines


def plan_of(dataset: Dataset[Any]) -> Plan:
    """The plan of a dataset. Lists the files of its source."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"a backend executes a Dataset, not {type(dataset).__name__}")
    source, shards = str(dataset.source), dataset.source.shards()
    chain = optimized(dataset.operations)
    size = sum(shard.bytes for shard in shards)
    if chain and isinstance(chain[0], Load):
        shards = with_versions(shards)
        size = sum(shard.bytes for shard in shards)
        if len(chain) > 1 and isinstance(chain[1], Reshard):
            parts = split_files(shards, chain[0], chain[1].shards)
            if parts is not None:
                source = f"{source}: {counted(len(shards), 'file')} in parts"
                # What was behind the exchange is directly behind the load now.
                shards, chain = parts, optimized((chain[0], *chain[2:]))
    return Plan(source, tuple(shards), tuple(_stages(chain, len(shards))), size)


def _stages(chain: tuple[Operation, ...], shards: int) -> list[Stage]:
    stages: list[Stage] = []
    begin: Exchange | None = None
    operations: list[RowOperation] = []
    count, right = shards, None

    def close(end: GroupBy | None) -> None:
        stages.append(Stage(begin, tuple(operations), end, count, right))
        operations.clear()

    for operation in chain:
        if not isinstance(operation, _EXCHANGES):
            if isinstance(begin, Commit) or (operations and isinstance(operations[-1], Write)):
                # What follows is of the paths, of which each shard has one.
                close(None)
                begin, right = Reshard(count), None
            operations.append(operation)
            continue
        # The first rows are in the plan itself: what needs no work needs no stage.
        close(operation if isinstance(operation, GroupBy) else None)
        begin, right = operation, None
        if isinstance(operation, GroupBy):
            count = operation.shards or max(1, count)
        elif isinstance(operation, Reshard):
            count = operation.shards
        elif isinstance(operation, Gather | Commit):
            count = 1
        else:
            right = plan_of(operation.right)
            _check_join(count, right)
    close(None)
    return stages


def _check_join(count: int, right: Plan) -> None:
    on_the_right = right.stages[-1].shards
    if count != on_the_right:
        raise PipelineError(
            f"sorted_merge_join joins shards with the same number: there are {count} on the left and {on_the_right} on "
            "the right. Give `group_by` of both the same `num_output_shards`."
        )
