"""How far a run is: bars on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from safetensors_spark.pipeline._plan import Stage
from safetensors_spark.pipeline._shard_file import Footer

_SECONDS = 60.0


class Progress:
    """Nothing is shown."""

    def begin(self, number: int, stage: Stage, made: int) -> None:
        """A stage begins, of which so many shards were made before."""

    def advance(self, number: int, footer: Footer) -> None:
        """A shard was made."""

    def close(self) -> None:
        """The run has ended."""


class Lines(Progress):
    """A line for each stage, and one a minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._state: dict[int, list[int]] = {}

    def begin(self, number: int, stage: Stage, made: int) -> None:
        self._state[number] = [made, stage.shards, 0, 0]

    def advance(self, number: int, footer: Footer) -> None:
        state = self._state[number]
        state[0] += 1
        state[2] += footer.rows
        state[3] += footer.bytes
        now = time.monotonic()
        if now - self._said >= _SECONDS:
            self._said = now
            done, total, rows, size = state
            print(f"stage {number + 1}: {done} of {total} shards, {rows:,} rows, {size:,} bytes", file=sys.stderr)


class Bars(Progress):
    """A bar for each stage."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._drawn = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rows]:,} rows {task.fields[size]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._tasks: dict[int, Any] = {}
        self._totals: dict[int, list[int]] = {}
        self._drawn.start()

    def begin(self, number: int, stage: Stage, made: int) -> None:
        name = stage.name if len(stage.name) <= 40 else f"{stage.name[:37]}..."
        self._tasks[number] = self._drawn.add_task(
            f"stage {number + 1}: {name}", total=stage.shards, completed=made, rows=0, size=""
        )
        self._totals[number] = [0, 0]

    def advance(self, number: int, footer: Footer) -> None:
        totals = self._totals[number]
        totals[0] += footer.rows
        totals[1] += footer.bytes
        size = f"{totals[1] / 1e6:,.1f} MB" if totals[1] else ""
        self._drawn.update(self._tasks[number], advance=1, rows=totals[0], size=size)

    def close(self) -> None:
        with suppress(Exception):
            self._drawn.stop()


def progress_of(wanted: bool | None) -> Progress:
    """What shows the progress: by default whatever fits the standard error."""
    if wanted is False:
        return Progress()
    return Bars() if sys.stderr.isatty() and find_spec("rich") else Lines()
