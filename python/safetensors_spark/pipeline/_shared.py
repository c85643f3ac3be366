"""Objects that are sent to each worker once, for functions to ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from safetensors_spark._errors import PipelineError

_current: ContextVar[Mapping[str, Any]] = ContextVar("safetensors_spark_shared", default={})  # noqa: B039 (never changed)


def get_shared(name: str) -> Any:
    """The object that `ZephyrContext.put` has given this name. Raises `PipelineError` if there is none."""
    known = _current.get()
    if name not in known:
        raise PipelineError(f"there is no shared object {name!r}; `put` was called with: {', '.join(known) or 'none'}")
    return known[name]


@contextmanager
def of_work(shared: Mapping[str, Any]) -> Iterator[None]:
    """These are the objects in this thread."""
    token = _current.set(shared)
    try:
        yield
    finally:
        _current.reset(token)
