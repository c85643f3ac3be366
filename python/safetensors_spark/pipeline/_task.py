"""A task: what a worker does to make one shard of one stage. It is the same for all backends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.commit.target import Target, open_target
from safetensors_spark.pipeline import _shared as shared
from safetensors_spark.pipeline import counters
from safetensors_spark.pipeline._chain import Chain
from safetensors_spark.pipeline._committing import commit_dataset
from safetensors_spark.pipeline._failures import is_temporary, with_note
from safetensors_spark.pipeline._grouping import frame_bytes, gather, scatter
from safetensors_spark.pipeline._joining import joined
from safetensors_spark.pipeline._operations import Commit, Gather, GroupBy, Join, Load, RowOperation, ShardInfo, Write
from safetensors_spark.pipeline._plan import Stage
from safetensors_spark.pipeline._quarantine import Quarantine
from safetensors_spark.pipeline._shard_file import Footer, FrameWriter, ShardFile
from safetensors_spark.pipeline._source import FramePartition
from safetensors_spark.pipeline._whole_file import whole_file
from safetensors_spark.pipeline._writing import write_shard


@dataclass(frozen=True)
class Work:
    """What all tasks of a stage have in common.

    Attributes:
        folder: where its shard files are.
        before: where those of the stage before are.
        partitions: of the next stage, if it begins with a group_by.
        memory: bytes that a task may keep rows in.
        quarantine: where rows go for which a function fails; None if they end the pipeline.
        shared: objects that functions may ask for, by name.
        resumes: what earlier runs have committed is not committed again.
    """

    stage: Stage
    number: int
    folder: str
    before: str
    partitions: int
    memory: int
    quarantine: str | None = None
    shared: Mapping[str, Any] = field(default_factory=dict)
    resumes: bool = True


@dataclass(frozen=True)
class Piece:
    """Rows of a shard file, all or from one to before another."""

    name: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Task:
    """A shard to make.

    Attributes:
        name: of the shard file that it writes: that this file exists means that the shard is made.
        rows: of the source, in the first stage.
        pieces: of the stage before.
        right: of a join, the shard file of the other side, in a folder of its own.
        output: what a write makes.
        write_ids: of a dataset, those that its shards may have; new ones get the first.
    """

    shard: int
    name: str
    rows: tuple[Any, ...] = ()
    pieces: tuple[Piece, ...] = ()
    right: tuple[str, str] | None = None
    output: str | None = None
    write_ids: tuple[str, ...] = ()


def with_own_rows(task: Task) -> Task:
    """The task with rows of its own, as it has in another process: functions may change them."""
    try:
        return replace(task, rows=deepcopy(task.rows))
    except Exception:
        # Locks and open files, which no other process could have.
        return task


# Set by who no longer wants what is being made in a thread.
Stop = threading.Event


def run(work: Work, task: Task, stop: Stop | None = None, rows: Iterator[Any] | None = None) -> Footer:
    """Make the shard. Raises what functions raise, with a note that says where.

    Args:
        rows: of the source, where only the worker has them; else those of the task.
    """
    with counters.of_shard() as counted, shared.of_work(work.shared):
        try:
            return _run(work, task, stop, rows, counted)
        except SystemExit as error:
            # It would end the worker, which looks like a lost one, or the caller.
            told = PipelineError(f"a function has called `sys.exit({error.code!r})`: raise an error instead")
            raise with_note(told, _where(work, task)) from error


def _run(work: Work, task: Task, stop: Stop | None, rows: Iterator[Any] | None, counted: Mapping[str, int]) -> Footer:
    started = time.monotonic()
    info = ShardInfo(task.shard, work.stage.shards)
    quarantine = Quarantine(work.quarantine, work.number, task.shard) if work.quarantine is not None else None
    bad = quarantine.add if quarantine is not None else None
    footer = Footer()
    # The versions of files that are loaded at once are in the shard's name.
    is_load = work.number == 0 and isinstance(next(iter(work.stage.operations), None), Load)
    known = frozenset(row for row in task.rows if isinstance(row, str)) if is_load else frozenset()
    chain = Chain(info, bad, stop, known=known, files=footer.files)
    try:
        target = open_target(work.folder)
        rows = chain.run(_begin(work, task, footer) if rows is None else rows, _without_write(work.stage))
        with whole_file(target, task.name, durable=False) as file:
            writer = FrameWriter(file, frame_bytes(work.memory, work.stage.shards))
            if work.stage.write is not None and task.output is not None:
                rows = iter([write_shard(rows, work.stage.write, task.output, task.shard, task.write_ids, footer)])
            end = work.stage.end
            if end is not None:
                found = scatter(rows, end, work.partitions, work.memory, writer, bad)
            else:
                found = writer.write(rows)
            if work.stage.write is None:
                footer.rows = found
            footer.read = chain.place.loaded or chain.place.rows
            footer.counters, footer.seconds = dict(counted), time.monotonic() - started
            if quarantine is not None:
                footer.quarantined = quarantine.finish(is_skipped=footer.is_skipped)
            writer.finish(footer)
    except BaseException as error:
        if not is_temporary(error):
            with_note(error, _where(work, task, f", {_row(chain)}"))
        raise
    return footer


def _where(work: Work, task: Task, row: str = "") -> str:
    return f"In shard {task.shard} of {work.stage.shards}{row}, of stage {work.number + 1}: {work.stage.name}"


def _row(chain: Chain) -> str:
    return f"record {chain.place.loaded}" if chain.place.loaded else f"row {chain.place.rows}"


def _without_write(stage: Stage) -> tuple[RowOperation, ...]:
    return stage.operations[:-1] if isinstance(stage.write, Write) else stage.operations


def _begin(work: Work, task: Task, footer: Footer) -> Iterator[Any]:
    begin = work.stage.begin
    if begin is None:
        if any(isinstance(row, FramePartition) for row in task.rows):
            raise PipelineError(
                "rows of a Spark DataFrame are on Spark: execute the pipeline with `create_backend('spark')`, or write "
                "the DataFrame to Parquet, and begin with `from_files`."
            )
        return iter(task.rows)
    target = open_target(work.before)
    if isinstance(begin, GroupBy):
        shards = [ShardFile(target, piece.name) for piece in task.pieces]
        return gather(shards, task.shard, begin, work.memory)
    rows = _rows(target, task.pieces)
    if isinstance(begin, Gather):
        return iter([begin.function(rows)])
    if isinstance(begin, Commit):
        footer.version = commit_dataset(begin, rows, task.write_ids, resumes=work.resumes)
        return iter([begin.path])
    if isinstance(begin, Join):
        assert task.right is not None
        folder, name = task.right
        return joined(rows, ShardFile(open_target(folder), name).rows(), begin)
    return rows


def _rows(target: Target, pieces: tuple[Piece, ...]) -> Iterator[Any]:
    for piece in pieces:
        yield from _rows_of(ShardFile(target, piece.name), piece)


def _rows_of(shard: ShardFile, piece: Piece) -> Iterator[Any]:
    """The rows of a piece: frames that have none of them are not read."""
    place = 0
    for frame in shard.frames:
        begin, place = place, place + frame.rows
        if place <= piece.start or (piece.end is not None and begin >= piece.end):
            continue
        end = None if piece.end is None else piece.end - begin
        yield from islice(shard.read(frame), max(0, piece.start - begin), end)
