"""Tasks on Spark: each is a job of one task, which Spark places, and runs again where executors are lost."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._backends import cluster
from safetensors_spark.pipeline._backends.spark_shuffle import reason, record, shuffled
from safetensors_spark.pipeline._failures import LostWorkerError, received
from safetensors_spark.pipeline._pool import ATTEMPTS, Side
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._source import FramePartition
from safetensors_spark.pipeline._task import Task, Work

# Seconds that cancelled jobs have to end.
_PATIENCE = 5.0


class SparkPool:
    """So many jobs at a time. That each shard is a job tells of its end, or of its error, at once."""

    def __init__(self, slots: int, spark: SparkSession) -> None:
        self.slots = slots
        self._context = _context(spark)
        failures = _failures(self._context)
        # With a `local` master Spark tries nothing again.
        self.restarts = failures > 1
        self.attempts = failures if self.restarts else ATTEMPTS
        self._tag = f"safetensors-spark-pipeline-{uuid4().hex}"
        self._running: set[Future[Footer]] = set()
        self._work: Work | None = None
        self._name = ""
        self._content: Any = None
        # A partition for tasks that have their rows with them.
        self._one = self._context.parallelize([0], 1)

    def start(self, work: Work, task: Task) -> Future[Footer]:
        if work is not self._work:
            if self._content is not None:
                self._content.unpersist()
            self._work, self._name = work, uuid4().hex
            self._content = self._context.broadcast(cluster.packed(work))
        future: Future[Footer] = Future()
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        InheritableThread(self._run, args=(future, self._name, self._content, task), daemon=True).start()
        return future

    def _run(self, future: Future[Footer], name: str, content: Any, task: Task) -> None:
        partition = next((row for row in task.rows if isinstance(row, FramePartition)), None)
        is_frame = partition is not None

        def attempt(rows: Iterable[Any]) -> list[tuple[bool, Any]]:
            if is_frame:
                return [cluster.attempt(name, lambda: bytes(content.value), task, map(record, rows))]
            # Spark ends a worker of Python that has not read all it was sent.
            for _ in rows:
                pass
            return [cluster.attempt(name, lambda: bytes(content.value), task)]

        try:
            self._context.addJobTag(self._tag)
            source, number = (partition.frame.rdd, partition.number) if partition else (self._one, 0)
            ((succeeded, answer),) = self._context.runJob(source, attempt, [number])
            if succeeded:
                future.set_result(answer)
            else:
                future.set_exception(received(answer))
        except (Py4JError, PySparkException) as error:
            future.set_exception(LostWorkerError(reason(error)))
        except BaseException as error:
            future.set_exception(error)

    def exchange(self, sides: Sequence[Side]) -> Iterator[tuple[int, Footer]]:
        self._context.addJobTag(self._tag)
        try:
            yield from shuffled(self._context, sides, self.attempts)
        finally:
            # Other jobs of the caller's thread are none of this pipeline.
            self._context.removeJobTag(self._tag)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        return wait(running, return_when=FIRST_COMPLETED).done

    def close(self, *, kill: bool) -> None:
        if kill:
            self._context.cancelJobsWithTag(self._tag)
            wait(list(self._running), _PATIENCE)
        if self._content is not None:
            self._content.unpersist()


def _context(spark: SparkSession) -> SparkContext:
    context = getattr(spark, "_sc", None)
    if not isinstance(context, SparkContext):
        raise PipelineError(
            "the Spark backend needs a session of its own process: one of Spark Connect runs no tasks of Python "
            "functions. Use `SparkSession.builder.master(...)`, or another backend."
        )
    return context


def _failures(context: SparkContext) -> int:
    """How often Spark tries a task."""
    if found := re.fullmatch(r"local(?:\[[^,\]]*(?:,\s*(\d+))?\])?", str(context.master)):
        return int(found[1] or 1)
    return int(context.getConf().get("spark.task.maxFailures", "4") or 4)
