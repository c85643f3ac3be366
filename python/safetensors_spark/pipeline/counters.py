"""Numbers that functions of a pipeline count: `counters.increment("too short")`.

Those of each shard are counted once, however often it was tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[Counter[str] | None] = ContextVar("safetensors_spark_counters", default=None)


def increment(name: str, amount: int = 1) -> None:
    """Add to a number of this shard. Outside of a pipeline it counts nothing."""
    counted = _current.get()
    if counted is not None:
        counted[name] += amount


def get_counters() -> dict[str, int]:
    """The numbers of this shard up to now."""
    return dict(_current.get() or {})


@contextmanager
def of_shard() -> Iterator[Counter[str]]:
    """Count for a new shard in this thread. Its functions may run pipelines of their own here."""
    counted: Counter[str] = Counter()
    token = _current.set(counted)
    try:
        yield counted
    finally:
        _current.reset(token)
