"""Tasks in threads of this process: for what waits for files and servers."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Thread
from typing import Any

from safetensors_spark.pipeline._pool import ATTEMPTS
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._task import Stop, Task, Work, run, with_own_rows

# Seconds that are given to tasks to end at their next rows.
_PATIENCE = 5.0


class ThreadPool:
    """A thread for each task. They are daemons: a process that ends does not wait for a function that does not."""

    attempts = ATTEMPTS
    restarts = False

    def __init__(self, threads: int) -> None:
        self.slots = threads
        self._stop = Stop()
        self._running: set[Future[Footer]] = set()

    def start(self, work: Work, task: Task) -> Future[Footer]:
        future: Future[Footer] = Future()
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        Thread(target=self._run, args=(future, work, task), name="safetensors-spark-pipeline", daemon=True).start()
        return future

    def _run(self, future: Future[Footer], work: Work, task: Task) -> None:
        try:
            future.set_result(run(work, with_own_rows(task), self._stop))
        except BaseException as error:
            future.set_exception(error)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        return wait(running, return_when=FIRST_COMPLETED).done

    def close(self, *, kill: bool) -> None:
        if kill:
            self._stop.set()
            wait(list(self._running), _PATIENCE)
