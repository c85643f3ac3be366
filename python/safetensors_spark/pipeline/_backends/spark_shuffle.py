"""Stages on both sides of a `group_by`, as one job of Spark: its shuffle brings frames of rows to their partitions.

What Spark shuffles are the frames that other backends write to files. Each has its place with it, so that rows of a key
come in the same order, whichever way frames arrive.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Row

from safetensors_spark._files.commit.target import Target, open_target
from safetensors_spark.pipeline._backends import cluster
from safetensors_spark.pipeline._failures import LostWorkerError, is_temporary, received, sent
from safetensors_spark.pipeline._grouping import gather
from safetensors_spark.pipeline._operations import GroupBy
from safetensors_spark.pipeline._pool import Side, lost
from safetensors_spark.pipeline._scratch import scratch
from safetensors_spark.pipeline._shard_file import Footer, FrameWriter, ShardFile
from safetensors_spark.pipeline._source import FramePartition
from safetensors_spark.pipeline._task import Task, Work, run
from safetensors_spark.pipeline._whole_file import whole_file

# In the folder of the stage that is divided: why the job ends, and what was lost last.
_ERROR, _LOST = "error", "lost"


# A partition, and of a frame: its shard, its number there, its run, how many rows it has, and its bytes.
_Frame = tuple[int, tuple[int, int, int, int, bytes]]


def shuffled(context: SparkContext, sides: Sequence[Side], attempts: int) -> Iterator[tuple[int, Footer]]:
    """Run the job. Spark makes again what it loses, also of rows that were divided before."""
    folder = open_target(sides[0].work.folder)
    for side in sides:
        open_target(side.work.folder).make()
    name, content = uuid4().hex, context.broadcast(cluster.packed_value(tuple(sides)))

    def stage(at: int, number: int, items: Iterator[Any]) -> Iterator[Any]:
        return _made(cluster.unpacked(name, lambda: bytes(content.value)), at, number, items)

    try:
        rows = _source(context, sides[0])
        for at, side in enumerate(sides[:-1]):
            rows = rows.mapPartitionsWithIndex(partial(stage, at)).partitionBy(side.work.partitions, _same)
        rows = rows.mapPartitionsWithIndex(partial(stage, len(sides) - 1))
        made = context.runJob(rows, list, [task.shard for task in sides[-1].tasks])
    except (Py4JError, PySparkException) as error:
        raise _told(folder, sides, LostWorkerError(reason(error)), attempts) from error
    finally:
        content.unpersist()
    for side in sides[:-1]:
        target = open_target(side.work.folder)
        yield from ((side.work.number, ShardFile(target, task.name).footer) for task in side.tasks)
    yield from ((sides[-1].work.number, footer) for footer in made)


def _source(context: SparkContext, side: Side) -> RDD[Any]:
    """A partition for each shard: of the frame whose rows they are, or one that only counts."""
    first = next((row for task in side.tasks for row in task.rows), None)
    if isinstance(first, FramePartition):
        rows: RDD[Any] = first.frame.rdd
        return rows
    return context.parallelize(range(len(side.tasks)), len(side.tasks))


def _same(partition: int) -> int:
    return partition


def _made(sides: Sequence[Side], at: int, number: int, items: Iterator[Any]) -> Iterator[Any]:
    """What a task makes of a shard: frames for the next shuffle, or the footer of what it has written."""
    side, is_last = sides[at], at == len(sides) - 1
    work = side.work
    task = next(one for one in side.tasks if one.shard == number)
    with _guarded(sides[0].work, work, task), scratch() as folder:
        cluster.check_folder(work)
        rows: Iterator[Any] | None = None
        if at > 0:
            assert isinstance(work.stage.begin, GroupBy)
            rows = gather([_collected(items, number, Path(folder))], number, work.stage.begin, work.memory)
        elif any(isinstance(row, FramePartition) for row in task.rows):
            rows = map(record, items)
        else:
            # Spark ends a worker of Python that has not read all it was sent.
            for _ in items:
                pass
        if is_last:
            yield run(work, task, rows=rows)
            return
        footer = run(replace(work, folder=folder), task, rows=rows)
        shard = ShardFile(open_target(folder), task.name)
        for place, frame in enumerate(shard.frames):
            yield frame.partition, (number, place, frame.run, frame.rows, shard.content(frame))
        _keep(open_target(work.folder), task, footer)


def _keep(folder: Target, task: Task, footer: Footer) -> None:
    """What is known of the shard, for the caller: a shard file without rows."""
    with whole_file(folder, task.name, durable=False) as file:
        FrameWriter(file, 1).finish(footer)


def _collected(frames: Iterator[_Frame], partition: int, folder: Path) -> ShardFile:
    """A file of frames, which are listed in the order of shards and of their places there."""
    places: list[tuple[int, int]] = []
    runs: dict[tuple[int, int], int] = {}
    with (folder / "frames").open("xb") as file:
        writer = FrameWriter(file, 1)
        for _, (shard, place, number, rows, content) in frames:
            places.append((shard, place))
            writer.add(content, rows, partition, runs.setdefault((shard, number), len(runs)))
        writer.finish(Footer(), sorted(range(len(places)), key=places.__getitem__))
    return ShardFile(open_target(folder), "frames")


@contextmanager
def _guarded(shared: Work, work: Work, task: Task) -> Iterator[None]:
    """Keep what a function raises, for the caller. Spark tries a task again that raises, and it raises at once then."""
    folder = open_target(shared.folder)
    if folder.status(_ERROR) is not None:
        raise RuntimeError("another task of the job has ended it")
    try:
        yield
    except (GeneratorExit, KeyboardInterrupt):
        # Spark wants no more of it.
        raise
    except BaseException as error:
        if is_temporary(error):
            folder.overwrite(_LOST, pickle.dumps((work.number, task.shard, sent(error)), 5))
        else:
            folder.create_exclusively(_ERROR, sent(error))
        raise


def _told(folder: Target, sides: Sequence[Side], error: Exception, attempts: int) -> BaseException:
    """What ended the job."""
    found = folder.read(_ERROR)
    if found is not None:
        return received(found)
    last = folder.read(_LOST)
    if last is None:
        return lost(sides[0].work, sides[0].tasks[0], error, attempts)
    number, shard, content = pickle.loads(last)
    side = next(one for one in sides if one.work.number == number)
    task = next(one for one in side.tasks if one.shard == shard)
    return lost(side.work, task, cast(Exception, received(content)), attempts)


def record(row: Row) -> dict[str, Any]:
    """A row of a DataFrame as pipelines have it."""
    return row.asDict(recursive=True)


def reason(error: BaseException) -> str:
    """What Spark says of a job that failed, without stack traces, whose lines are indented."""
    text = str(getattr(error, "java_exception", None) or error).partition("Driver stacktrace:")[0]
    told = " ".join(line for line in text.splitlines() if line and not line[0].isspace())
    told = told.replace("Traceback (most recent call last): ", "")
    if "No module named 'safetensors_spark'" in told:
        return f"{told} Spark's workers run another Python: let `spark.pyspark.python` name one that has the package"
    return told
