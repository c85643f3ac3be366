"""Memory that a batch's arrays are made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._gather import Rows


class Memory(Protocol):
    """Rows of bytes, to be filled from mapped shards."""

    def fill(self, pieces: Sequence[Array]) -> None:
        """Copies these rows, one after the other."""

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

    def fill(self, pieces: Sequence[Array]) -> None:
        np.concatenate(pieces, out=self.rows)

    def gather(self, rows: Rows, begin: int, end: int) -> None:
        rows.copy(begin, end, self.rows)
