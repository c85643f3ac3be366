"""Where rows were read from, for errors that are found when a row is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from safetensors_spark._errors import DamagedShardError, InvalidTensorError, SafetensorsSparkError
from safetensors_spark._files.numpy_dtypes import Array


class Origin(Protocol):
    def place(self, row: int) -> str:
        """What errors call the row."""
        ...


@dataclass(frozen=True)
class OfColumn:
    """The rows of a shard's column."""

    column: str

    def place(self, row: int) -> str:
        return f"{self.column}, row {row} of the shard"


@dataclass(frozen=True)
class From:
    """Rows from a number on."""

    origin: Origin
    start: int

    def place(self, row: int) -> str:
        return self.origin.place(self.start + row)


@dataclass(frozen=True)
class Taken:
    """Rows that were taken: `which` of the origins each one has, and its number there."""

    origins: Sequence[Origin]
    which: Array
    rows: Array

    def place(self, row: int) -> str:
        return self.origins[int(self.which[row])].place(int(self.rows[row]))


def taken(origins: Sequence[Origin | None], which: Array, rows: Array) -> Origin | None:
    """That of rows which were taken: `which` of the origins each one has, and its number there."""
    known = [origin for origin in origins if origin is not None]
    return Taken(known, which, rows) if len(known) == len(origins) else None


def not_utf8(origin: Origin | None, row: int, error: UnicodeDecodeError) -> SafetensorsSparkError:
    """What to say of a row of text that cannot be decoded."""
    what = f"is not UTF-8: {error.reason} at its byte {error.start}"
    if origin is None:
        return InvalidTensorError(f"row {row} {what}.")
    return DamagedShardError(f"{origin.place(row)}, {what}: `safetensors-spark verify` reports what else is wrong.")
