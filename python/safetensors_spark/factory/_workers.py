"""Processes that stay for all stages of a run: each takes seconds to import what operators need."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from safetensors_spark.pipeline import Backend
from safetensors_spark.pipeline._backend import ProcessBackend
from safetensors_spark.pipeline._pool import Handle, Pool
from safetensors_spark.pipeline._task import Task, Work


@contextmanager
def kept_workers(backend: Backend) -> Iterator[Backend]:
    """The same backend; of processes, with those of the first run also for the next ones."""
    if not isinstance(backend, ProcessBackend):
        yield backend
        return
    pool = backend.pool()
    try:
        yield _Lending(backend, pool)
    finally:
        pool.close(kill=False)


class _Lending(Backend):
    kind = ProcessBackend.kind

    def __init__(self, backend: Backend, pool: Pool) -> None:
        super().__init__(backend.options)
        self._pool = pool

    def pool(self) -> Pool:
        return _Lent(self._pool)


class _Lent:
    """A pool whose processes stay when a run has given them back."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.slots, self.attempts, self.restarts = pool.slots, pool.attempts, pool.restarts

    def start(self, work: Work, task: Task) -> Handle:
        return self._pool.start(work, task)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        return self._pool.wait(running)

    def close(self, *, kill: bool) -> None:
        if kill:
            self._pool.close(kill=True)
