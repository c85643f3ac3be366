"""What the demo tells: parts, their checks, and how long each step took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._commands.tables import Table
from safetensors_spark._commands.tables import show as show_table

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Check:
    """A comparison: who read what, how many values, and the first difference ("" if there is none)."""

    reader: str
    what: str
    values: int
    difference: str


@dataclass(frozen=True)
class Part:
    """What was done with one dataset."""

    title: str
    tables: list[Table]
    checks: list[Check]
    files: list[tuple[str, str]]
    """The paths of the output."""
    truth: str = "scikit-learn"
    """What the checks compare with."""

    @property
    def holds(self) -> bool:
        return not any(check.difference for check in self.checks)


@dataclass
class Clock:
    """Measures steps, in seconds, and names each on a terminal as it begins."""

    steps: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        if sys.stderr.isatty():
            print(f"{name} ...", file=sys.stderr, flush=True)
        begin = time.monotonic()
        yield
        self.steps.append((name, time.monotonic() - begin))


def compare(reader: str, what: str, found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Check:
    """Compare two arrays: shape, then every value."""
    import numpy as np

    if found.shape != expected.shape:
        difference = f"shape {list(found.shape)}, expected {list(expected.shape)}"
    elif len(wrong := np.argwhere(found != expected)):
        first = tuple(map(int, wrong[0]))
        difference = f"{len(wrong)} differ, first at {list(first)}: {found[first]}, expected {expected[first]}"
    else:
        difference = ""
    return Check(reader, what, expected.size, difference)


def show(parts: list[Part], clock: Clock, log: Path) -> bool:
    """Print the parts, the time, where everything lies, and the verdict, which is returned: whether all is equal."""
    for part in parts:
        _show_part(part)
    show_table(Table("Time", ("step", "seconds"), [(name, f"{seconds:.1f}") for name, seconds in clock.steps]))
    files = [file for part in parts for file in part.files]
    show_table(Table("Output", ("what", "path"), [*files, ("Spark's log", str(log))]))
    equal = all(part.holds for part in parts)
    print("Every value came back unchanged." if equal else "DIFFERENT: see the results above.")
    return equal


def _show_part(part: Part) -> None:
    print(f"\n{part.title}\n")
    checks = [(c.reader, c.what, f"{c.values:,}", c.difference or "all equal") for c in part.checks]
    compared = Table(f"Compared with {part.truth}", ("reader", "values", "count", "result"), checks)
    for table in [*part.tables, *([compared] if checks else [])]:
        show_table(table)
