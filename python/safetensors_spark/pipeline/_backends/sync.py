"""Tasks in the caller's own thread."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from safetensors_spark.pipeline._pool import ATTEMPTS
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._task import Task, Work, run, with_own_rows


class _Ended:
    def __init__(self, footer: Footer | None, error: Exception | None) -> None:
        self._footer, self._error = footer, error

    def result(self) -> Footer:
        if self._footer is None:
            assert self._error is not None
            raise self._error
        return self._footer


class SyncPool:
    """One task at a time, here."""

    slots = 1
    attempts = ATTEMPTS
    restarts = False

    def start(self, work: Work, task: Task) -> _Ended:
        try:
            return _Ended(run(work, with_own_rows(task)), None)
        except Exception as error:
            return _Ended(None, error)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        return list(running)

    def close(self, *, kill: bool) -> None:
        """There is nothing to end."""
