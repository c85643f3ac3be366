"""Tasks that threads run ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run_ahead(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """The tasks' results, in their order: some are run in threads before they are asked for."""
    if threads == 0:
        yield from (task() for task in tasks)
        return
    pool = ThreadPoolExecutor(threads, "safetensors-spark-batches")
    running: deque[Future[T]] = deque()
    try:
        for task in tasks:
            running.append(pool.submit(task))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
