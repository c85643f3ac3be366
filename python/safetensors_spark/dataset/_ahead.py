"""Shards that are fetched before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from safetensors_spark._files.manifest import Shard
from safetensors_spark.dataset._forks import Forked

_THREADS = 2

_V = TypeVar("_V")


class Ahead(Forked, Generic[_V]):
    """Fetches files in threads before they are requested. May be used from many threads.

    The threads are daemons: a process that ends, as by Ctrl-C, does not wait for what nobody needs any more.
    """

    def __init__(self, fetch: Callable[[Shard], _V]) -> None:
        self._fetch = fetch
        super().__init__()

    def _begin(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, Shard] = {}
        self._begun: dict[str, Future[_V]] = {}
        self._threads = 0

    def take(self, shard: Shard) -> _V:
        """The file, fetched now if it has not been begun. Raises what fetching raises."""
        with self._lock:
            self._waiting.pop(shard.file, None)
            begun = self._begun.pop(shard.file, None)
        return self._fetch(shard) if begun is None else begun.result()

    def begin(self, shards: Sequence[Shard]) -> None:
        """Fetches these files in their order, and forgets others. An error is raised when its file is taken."""
        names = {shard.file for shard in shards}
        with self._lock:
            self._begun = {name: future for name, future in self._begun.items() if name in names}
            self._waiting = {shard.file: shard for shard in shards if shard.file not in self._begun}
            for _ in range(min(len(self._waiting), _THREADS - self._threads)):
                Thread(target=self._run, name="safetensors-spark-prefetch", daemon=True).start()
                self._threads += 1

    def _run(self) -> None:
        while (next_one := self._next()) is not None:
            shard, future = next_one
            try:
                future.set_result(self._fetch(shard))
            except BaseException as error:
                future.set_exception(error)

    def _next(self) -> tuple[Shard, Future[_V]] | None:
        with self._lock:
            if not self._waiting:
                self._threads -= 1
                return None
            shard = self._waiting.pop(next(iter(self._waiting)))
            future = self._begun[shard.file] = Future()
            return shard, future
