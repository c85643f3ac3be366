"""How far a run is: bars on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from safetensors_spark.pipeline._plan import Stage
from safetensors_spark.pipeline._shard_file import Footer

_SECONDS = 60.0


@dataclass
class _Made:
    """What this run has made of a stage."""

    total: int
    shards: int
    rows: int = 0
    bytes: int = 0
    _begun: float = field(default_factory=time.monotonic)

    def add(self, footer: Footer) -> None:
        self.shards += 1
        self.rows += footer.rows
        self.bytes += footer.bytes

    def __str__(self) -> str:
        """Rows, bytes that were written, and how many in a second."""
        seconds = max(time.monotonic() - self._begun, 1e-3)
        parts = [f"{self.rows:,} rows", f"{self.rows / seconds:,.0f} rows/s"]
        if self.bytes:
            parts += [f"{self.bytes / 1e6:,.1f} MB", f"{self.bytes / 1e6 / seconds:,.1f} MB/s"]
        return ", ".join(parts)


class Progress:
    """Nothing is shown."""

    def begin(self, number: int, stage: Stage, made: int) -> None:
        """A stage begins, of which so many shards were made before."""

    def advance(self, number: int, footer: Footer) -> None:
        """A shard was made."""

    def close(self) -> None:
        """The run has ended."""


class Lines(Progress):
    """A line a minute."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._stages: dict[int, _Made] = {}

    def begin(self, number: int, stage: Stage, made: int) -> None:
        self._stages[number] = _Made(stage.shards, made)

    def advance(self, number: int, footer: Footer) -> None:
        made = self._stages[number]
        made.add(footer)
        now = time.monotonic()
        if now - self._said >= _SECONDS:
            self._said = now
            print(f"stage {number + 1}: {made.shards} of {made.total} shards, {made}", file=sys.stderr, flush=True)


class Bars(Progress):
    """A bar of shards for each stage."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._drawn = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[made]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._stages: dict[int, tuple[Any, _Made]] = {}
        self._drawn.start()

    def begin(self, number: int, stage: Stage, made: int) -> None:
        name = stage.name if len(stage.name) <= 40 else f"{stage.name[:37]}..."
        # Names may have brackets, which are Rich's markup.
        text = f"stage {number + 1}: {name}".replace("[", r"\[")
        bar = self._drawn.add_task(text, total=stage.shards, completed=made, made="")
        self._stages[number] = bar, _Made(stage.shards, made)

    def advance(self, number: int, footer: Footer) -> None:
        bar, made = self._stages[number]
        made.add(footer)
        self._drawn.update(bar, advance=1, made=str(made))

    def close(self) -> None:
        with suppress(Exception):
            self._drawn.stop()


def progress_of(wanted: bool | None) -> Progress:
    """What shows the progress: by default whatever fits the standard error."""
    if wanted is False:
        return Progress()
    return Bars() if sys.stderr.isatty() and find_spec("rich") else Lines()
