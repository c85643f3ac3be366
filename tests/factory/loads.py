"""Operators that are loaded, and tell in a folder where that was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import PrivateAttr

from safetensors_spark.factory import Deduplicator, Generator, Keys, NewRows, Score
from safetensors_spark.factory.operators.exact_dedup import ExactDedup


def told(folder: str | Path) -> list[str]:
    """The processes in which something was loaded, one name for each time."""
    return sorted(path.name.partition("-")[0] for path in Path(folder).glob("*-load"))


class Doubles(Score):
    """Twice a number, by a model that has to be loaded."""

    type = "doubles"

    folder: str
    output: str = "double"
    wrong_at: int = -1
    dies_at: int = -1
    deaths: int = 0
    breaks: bool = False
    waits_for: int = 0

    _factor: Any = PrivateAttr(default=None)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.int64()}

    def load(self) -> None:
        (Path(self.folder) / f"{os.getpid()}-{uuid4().hex}-load").touch()
        if self.breaks:
            raise OSError("there are no weights")
        self._factor = 2

    def score(self, batch: pa.RecordBatch) -> Any:
        end = time.monotonic() + 120
        while len(told(self.folder)) < self.waits_for and time.monotonic() < end:
            time.sleep(0.05)
        (Path(self.folder) / f"{os.getpid()}-{uuid4().hex}-batch").touch()
        numbers = batch["n"].to_pylist()
        if self.wrong_at in numbers:
            raise ValueError("a number that is wrong")
        if self.dies_at in numbers:
            dead = Path(self.folder) / "deaths"
            count = len(dead.read_text()) if dead.exists() else 0
            if count < self.deaths:
                dead.write_text("x" * (count + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return {self.output: [n * self._factor for n in numbers]}


class Twins(Generator):
    """A new row for each odd number, by a model that has to be loaded."""

    type = "twins"

    _of: Any = PrivateAttr(default=None)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"twin": pa.string()}

    def load(self) -> None:
        self._of = str

    def generate(self, batch: pa.RecordBatch) -> NewRows:
        odd = [(row, n) for row, n in enumerate(batch["n"].to_pylist()) if n % 2]
        return NewRows([row for row, _ in odd], {"twin": [self._of(n) for _, n in odd]})


class LoadedDedup(Deduplicator):
    """Drops rows of an equal text, by a model that has to be loaded."""

    type = "loaded_dedup"

    _other: Any = PrivateAttr(default=None)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)

    def load(self) -> None:
        self._other = ExactDedup()

    def keys(self, batch: pa.RecordBatch) -> Keys:
        found: Keys = self._other.keys(batch)
        return found
