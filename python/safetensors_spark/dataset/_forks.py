"""What a forked process has to start again: of its parent's threads it has none, not even one that has a lock."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from weakref import WeakSet


class Forked(ABC):
    """Has locks or threads, which `_begin` makes: now, and in each process that is forked from this one."""

    def __init__(self) -> None:
        self._begin()
        _ALL.add(self)

    @abstractmethod
    def _begin(self) -> None: ...


_ALL: WeakSet[Forked] = WeakSet()


def _forked() -> None:
    for one in _ALL:
        one._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
