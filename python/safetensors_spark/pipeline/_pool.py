"""How tasks run: a pool starts them and tells of their ends; the loop here decides what runs, again or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from safetensors_spark._errors import LostShardError, counted
from safetensors_spark.pipeline._failures import is_temporary, with_note
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._task import Task, Work

# How often a shard is tried whose workers die, or lose their connections.
ATTEMPTS = 3


class Handle(Protocol):
    """A task that was started."""

    def result(self) -> Footer:
        """What it has returned. Raises what it has raised; `LostWorkerError` if its worker died."""


class Pool(Protocol):
    """Workers.

    Attributes:
        slots: how many tasks to start at a time.
        attempts: how often a task is tried that fails for a reason that may pass.
        restarts: whether the pool itself tries it again, and not the loop.
    """

    slots: int
    attempts: int
    restarts: bool

    def start(self, work: Work, task: Task) -> Handle: ...

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        """Those handles that have ended, at least one."""

    def close(self, *, kill: bool) -> None:
        """Give workers back, or end them with what they do."""


@dataclass(frozen=True)
class Done:
    """A shard that was made."""

    task: Task
    footer: Footer


@dataclass(frozen=True)
class Side:
    """A stage on a side of an exchange, and the shards of it to make."""

    work: Work
    tasks: tuple[Task, ...]


@runtime_checkable
class Exchanging(Protocol):
    """A pool that has a shuffle of its own, so that rows go from stage to stage without files."""

    def exchange(self, sides: Sequence[Side]) -> Iterator[tuple[int, Footer]]:
        """Make stages of which each divides its rows by key for the next one. Returns the footer of each shard, with
        the number of its stage. Of the last stage alone there are shard files.

        Raises the first error of a function, and `LostShardError` for a shard that was lost each time.
        """


def run_tasks(pool: Pool, work: Work, tasks: Iterable[Task]) -> Iterator[Done]:
    """Make all shards. They come in the order in which they are made.

    Raises the first error of a function, and `LostShardError` for a shard that was lost each time.
    """
    waiting = deque((task, 1) for task in tasks)
    running: dict[Any, tuple[Task, int]] = {}
    while waiting or running:
        while waiting and len(running) < pool.slots:
            task, attempt = waiting.popleft()
            running[pool.start(work, task)] = task, attempt
        for handle in pool.wait(running):
            task, attempt = running.pop(handle)
            try:
                footer = handle.result()
            except Exception as error:
                if not is_temporary(error):
                    raise
                if pool.restarts or attempt >= pool.attempts:
                    raise lost(work, task, error, pool.attempts) from error
                waiting.appendleft((task, attempt + 1))
            else:
                yield Done(task, footer)


def lost(work: Work, task: Task, error: Exception, attempts: int) -> Exception:
    """What is raised for a shard that was lost each time."""
    stage = work.stage
    found = LostShardError(
        f"shard {task.shard} of {stage.shards} of stage {work.number + 1} ({stage.name}) could not be computed in "
        f"{counted(attempts, 'attempt')}. The last one ended with: {type(error).__name__}: {error}. "
        "Finished shards are kept: run the pipeline again to resume."
    )
    return with_note(found, f"It begins with {task.rows[0]!r:.300}") if task.rows else found  # type: ignore[return-value]
