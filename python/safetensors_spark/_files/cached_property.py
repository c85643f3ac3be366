"""Properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")


class cached_property(Generic[_T]):  # noqa: N801
    """As Python's from 3.12 on, which has no lock: of that, a process forked in the meantime would wait for ever."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> cached_property[_T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> _T: ...
    def __get__(self, owner: object | None, kind: type) -> cached_property[_T] | _T:
        if owner is None:
            return self
        found = vars(owner)[self._compute.__name__] = self._compute(owner)
        return found
