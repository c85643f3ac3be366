"""Memory that a batch's arrays are made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from safetensors_spark.dataset._gather import CACHED, Rows


class Memory(Protocol):
    """Rows of bytes, to be filled from mapped shards."""

    def fill(self, pieces: Sequence[memoryview]) -> None:
        """Copies these bytes, one piece after the other: all that there is room for."""

    def gather(self, rows: Rows, begin: int, end: int) -> None:
        """Copies the rows from `begin` to before `end`."""


class Own:
    """Memory of this process."""

    def __init__(self, count: int, width: int) -> None:
        # NumPy asks for huge pages, without which new memory takes as long to get as to fill.
        self.rows = np.empty((count, width), np.uint8)

    def part(self, begin: int, end: int) -> Own:
        """The rows from `begin` to before `end`, in the same memory."""
        part = Own(0, 0)
        part.rows = self.rows[begin:end]
        return part

    def fill(self, pieces: Sequence[memoryview]) -> None:
        # NumPy takes four times as long as Python to come to a piece.
        target, at = self.rows.reshape(-1), 0
        many = max(1, CACHED * len(pieces) // max(1, self.rows.size))
        for begin in range(0, len(pieces), many):
            some = pieces[begin : begin + many]
            joined = np.frombuffer(some[0] if len(some) == 1 else b"".join(some), np.uint8)
            target[at : at + len(joined)] = joined
            at += len(joined)

    def gather(self, rows: Rows, begin: int, end: int) -> None:
        rows.copy(begin, end, self.rows)
