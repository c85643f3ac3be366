"""Tasks that threads run ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


def run_ahead(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """The tasks' results, in their order: some are run in threads before they are requested.

    A process that is forked meanwhile may continue as well: it runs again what was on its way.
    """
    if threads == 0:
        yield from (task() for task in tasks)
        return
    ahead = _Ahead[T](threads)
    try:
        for task in tasks:
            ahead.begin(task)
            if len(ahead) > threads:
                yield ahead.next()
        while len(ahead):
            yield ahead.next()
    finally:
        ahead.stop()


class _Ahead(Generic[T]):
    """Tasks in threads of this process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._running: deque[tuple[Callable[[], T], Future[T]]] = deque()
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self._threads, "safetensors-spark-batches")
        self._running = deque((task, self._pool.submit(task)) for task, _ in self._running)

    def _ours(self) -> None:
        # A forked process has none of its parent's threads, which may even have had the locks of their results.
        if self._process != os.getpid():
            self._start()

    def begin(self, task: Callable[[], T]) -> None:
        self._ours()
        self._running.append((task, self._pool.submit(task)))

    def next(self) -> T:
        self._ours()
        _, result = self._running.popleft()
        return result.result()

    def stop(self) -> None:
        if self._process == os.getpid():
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __len__(self) -> int:
        return len(self._running)
