"""Pieces of samples, one after the other, copied into arrays of rows of one length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._columns import Columns, filled
from safetensors_spark.dataset._order import Shuffle
from safetensors_spark.dataset._spans import Spans

# Where the samples of the shard of this number begin, and the last one ends.
Offsets = Callable[[int], Array]


@dataclass(frozen=True)
class Pieces:
    """Pieces of samples.

    Attributes:
        rows: the row that each piece is of, in ascending order.
        which: the number of its shard.
        starts: its first value in that shard.
        lengths: how many values it has.
    """

    rows: Array
    which: Array
    starts: Array
    lengths: Array

    def of_rows(self, rows: Array, first_shard: int = 0) -> Pieces:
        """The same pieces of these rows, of shards that are counted from this number on."""
        return Pieces(rows[self.rows], self.which + first_shard, self.starts, self.lengths)

    @classmethod
    def joined(cls, parts: list[Pieces]) -> Pieces:
        """Those of all parts, row after row; of a row those of the first parts come first."""
        rows, *others = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "which", "starts", "lengths")
        )
        order = np.argsort(rows, kind="stable")
        return cls(rows[order], *(other[order] for other in others))


class Rows(Protocol):
    """Rows of one length, of pieces of samples."""

    def pieces(self, offsets: Offsets, numbers: Array, shuffle: Shuffle | None) -> Pieces:
        """Of what the rows of these numbers consist, as the order has them that is shuffled like this."""

    def cut(self, columns: Columns[Any, Any], pieces: Pieces, count: int) -> Any:
        """So many rows of these pieces, to be taken some at a time: see `Chosen`."""


class Cut:
    """Rows that consist of pieces of samples, to be taken some at a time: see `Chosen`."""

    def __init__(self, columns: Columns[Any, Any], pieces: Pieces, length: int) -> None:
        """Each row has so many values; all columns are ragged, and have the same offsets."""
        self._opened, self._new = columns.opened(pieces.which), columns.new
        self._spans, self._rows, self._length = (
            Spans(self._opened.which, pieces.starts, pieces.lengths),
            pieces.rows,
            length,
        )

    def piece(self, begin: int, end: int) -> Callable[[], dict[str, Any]]:
        """What copies the rows from `begin` to before `end`, in any thread, to arrays of shape `[rows, length]`."""
        spans = self._spans.take(*self._rows.searchsorted((begin, end)).tolist())
        batch: dict[str, Any] = {}
        copies = []
        for name, columns in self._opened.columns.items():
            values, memory = self._new((end - begin) * self._length, columns[0])
            batch[name] = values.reshape(end - begin, self._length, *columns[0].shape)
            copies.append(partial(spans.copy, [column.rows for column in columns], memory))
        return partial(filled, batch, self._opened.check, copies)
