"""The physical plan of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from safetensors_spark import _html
from safetensors_spark._errors import counted
from safetensors_spark.factory._operator import Operator
from safetensors_spark.factory._pipeline import Pipeline
from safetensors_spark.factory._placement import placement
from safetensors_spark.factory._run import FILE_BYTES, SHARD_BYTES, WINDOW_BYTES, stage_works
from safetensors_spark.factory._source import InputShard
from safetensors_spark.factory._stage_work import Mode, Sizes, StageWork, outputs_of
from safetensors_spark.pipeline import Backend, create_backend


@dataclass(frozen=True)
class StagePlan:
    """The plan of a stage.

    Attributes:
        folder: the folder of its files and its manifest.
        shards: the number of tasks; None if it depends on an earlier stage.
        rows: the number of input rows; None if unknown.
        made: the number of finished shards.
        changes: differences from the existing stage, which make the run fail.
        work: what would be done, and why.
        placements: for each operator, whether it takes GPUs, and how many actors it has.
        fields: the fields of its output rows.
    """

    name: str
    folder: str
    shards: int | None
    rows: int | None
    made: int
    changes: Sequence[str]
    work: str
    operators: Sequence[Operator]
    placements: Sequence[str]
    fields: Sequence[str]


@dataclass(frozen=True)
class PhysicalPlan:
    """The plan of a run. Its text shows all of it."""

    pipeline: str
    source: str
    runtime: str
    sizes: Sizes
    stages: Sequence[StagePlan]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.lines(str(self))

    def _lines(self) -> Iterator[str]:
        yield f"pipeline {self.pipeline}: {counted(len(self.stages), 'stage')}"
        yield f"input: {self.source}"
        yield f"runtime: {self.runtime}"
        yield f"windows of about {_mib(self.sizes.window)} of rows, files of up to {_mib(self.sizes.file)} of rows"
        before = "of the input"
        for stage in self.stages:
            shards = "shards" if stage.shards is None else counted(stage.shards, "shard")
            yield f"stage {stage.name}: {shards} {before}, {_rows(stage.rows)}"
            yield f"  {stage.work}"
            cells = [_cells(one, place) for one, place in zip(stage.operators, stage.placements, strict=True)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            for row in cells:
                line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                yield f"    {line.rstrip()}"
            yield f"  rows have {', '.join(stage.fields)}"
            yield f"  written to {stage.folder}: data/*.parquet, dropped/*.parquet, manifest.json"
            before = f"of stage {stage.name}, one for each file"


def plan(
    pipeline: Pipeline,
    dataset: Any,
    out: str | os.PathLike[str],
    *,
    mode: Mode = "incremental",
    backend: Backend | None = None,
    window_bytes: int = WINDOW_BYTES,
    shard_bytes: int = SHARD_BYTES,
    file_bytes: int = FILE_BYTES,
) -> PhysicalPlan:
    """The plan of `run` with the same arguments. It writes nothing.

    Raises `ContractError` for an operator that does not fit the rows.
    """
    backend = backend or create_backend()
    sizes = Sizes(window_bytes, file_bytes)
    first, works = stage_works(pipeline, dataset, out, mode, sizes, shard_bytes)
    shards: list[InputShard] | None = first
    rows = len(dataset) if hasattr(dataset, "__len__") else None
    source = f"{type(dataset).__name__}, {counted(len(first), 'shard')}, {_rows(rows)}"
    stages = []
    for one in works:
        work = replace(one, shards=shards or ())
        is_compared = one.stage.deduplicator is not None
        stages.append(
            StagePlan(
                name=work.stage.name,
                folder=work.folder,
                shards=None if shards is None else len(shards),
                rows=rows,
                made=0 if is_compared else sum(record is not None for record in work.records),
                changes=work.changes,
                work=_told(work, shards is not None),
                operators=work.stage.operators,
                placements=[placement(operator, backend) for operator in work.stage.operators],
                fields=work.schema.names,
            )
        )
        if shards is not None and not is_compared and work.before is not None and work.is_whole and not work.changes:
            shards, rows = outputs_of(work.folder, work.before, work.schema), work.before["output_rows"]
        else:
            shards, rows = None, None
    runtime = f"{backend.kind}, {counted(backend.options.max_parallelism, 'task')} at a time"
    return PhysicalPlan(pipeline.name, source, runtime, sizes, stages)


def _told(work: StageWork, is_known: bool) -> str:
    if work.changes:
        changes = "; ".join(work.changes)
        return f"REFUSED: it was made with another configuration: {changes}. The mode `overwrite` computes it again"
    if work.mode == "overwrite":
        return "all shards are computed, and replace the old stage: the mode is `overwrite`"
    if work.stage.deduplicator is not None:
        return "the comparison of all keys decides which shards are computed; existing keys are not computed again"
    if not is_known:
        return "the previous stage decides which shards are computed" if work.before else "all shards are computed"
    if work.before is None:
        return "all shards are computed: there is no manifest. Finished shards of an interrupted run are kept"
    missing, count = work.records.count(None), len(work.records)
    if missing:
        return f"{missing:,} of {counted(count, 'shard')} are computed: their rows are new or have changed"
    if not work.is_whole:
        return (
            f"no shard is computed, but shards leave the output: {count:,} of {len(work.before['shards']):,} are left"
        )
    return (
        f"nothing is computed: {counted(count, 'shard')} of the same rows exist, with the same configuration and code"
    )


def _cells(operator: Operator, place: str) -> tuple[str, ...]:
    writes = ", ".join(f"{name}: {kind}" for name, kind in operator.writes.items()) or "no field"
    return operator.id, operator.type, operator.kind, place, f"{', '.join(operator.reads)} -> {writes}"


def _rows(count: int | None) -> str:
    return "rows unknown" if count is None else counted(count, "row")


def _mib(size: int) -> str:
    return f"{size / 2**20:,.4g} MiB"
