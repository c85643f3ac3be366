"""What was used last, within a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

from safetensors_spark.dataset._forks import Forked

_V = TypeVar("_V")


def _one(_: object) -> int:
    return 1


class Recent(Forked, Generic[_V]):
    """Things that are made when they are first needed; those that were used longest ago go when there are too many.

    May be used from many threads, and is empty in the processes that it is sent to.
    """

    def __init__(self, limit: int, size: Callable[[_V], int] = _one) -> None:
        """`limit` is what all may have of `size` together; one thing is kept whatever it has."""
        self._limit, self._size = limit, size
        self._kept: OrderedDict[Hashable, _V] = OrderedDict()
        super().__init__()

    def _begin(self) -> None:
        self._lock = Lock()
        # A thread may have been stopped between the two by a fork.
        self._taken = sum(map(self._size, self._kept.values()))

    def get(self, key: Hashable) -> _V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, key: Hashable, made: _V) -> _V:
        """What was made, which now counts as used last."""
        with self._lock:
            self._drop(key)
            self._kept[key] = made
            self._taken += self._size(made)
            while self._taken > self._limit and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))
        return made

    def shrink(self, limit: int, size: Callable[[Hashable], int], needed: Container[Hashable]) -> None:
        """Lets go of those that were used longest ago, but not of what is needed, until all have `limit` of `size`."""
        with self._lock:
            taken = sum(map(size, self._kept))
            for key in [key for key in self._kept if key not in needed]:
                if taken <= limit:
                    break
                taken -= size(key)
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        if key in self._kept:
            self._taken -= self._size(self._kept.pop(key))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __reduce__(self) -> tuple[Any, ...]:
        return Recent, (self._limit, self._size)
