"""Numbers that functions of a pipeline count: `counters.increment("too short")`.

Those of each shard are counted once, however often it was tried.
"""

from __future__ import annotations

from collections import Counter
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


def begin() -> Counter[str]:
    """Count for a new shard in this thread from now on."""
    counted: Counter[str] = Counter()
    _current.set(counted)
    return counted
