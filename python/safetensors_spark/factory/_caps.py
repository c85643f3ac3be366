"""Limits on how much of a dataset a mixture takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from safetensors_spark.dataset._arguments import whole
from safetensors_spark.factory._errors import ConfigError


@dataclass(frozen=True)
class Caps:
    """Limits on how much of a dataset is taken. The first row that would exceed one ends the dataset.

    Attributes:
        rows: the maximum number of rows.
        tokens: the maximum number of tokens, from a field of token ids, or of counts.
        images: the maximum number of images, from a field of images, or of lists of them. Null counts as none.
        bytes: the maximum number of bytes of values: text as UTF-8, numbers, dates and times with 8 bytes each,
            booleans with one, null with none.

    Raises `TypeError` or `ValueError` for a limit that is not a whole number from 0 on.
    """

    rows: int | None = None
    tokens: int | None = None
    images: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) is not None:
                whole(one.name, getattr(self, one.name), 0)

    def part(self, number: int, count: int) -> tuple[int | None, ...]:
        """One of so many parts, whose sum is the cap."""
        limits = (getattr(self, one.name) for one in fields(self))
        return tuple(None if one is None else one // count + (number < one % count) for one in limits)


@dataclass(frozen=True)
class Counting:
    """Counts what rows have. The fields are needed for caps of tokens and images alone.

    Attributes:
        tokens: the field of token ids, or of numbers of tokens.
        images: the field of images.
    """

    tokens: str
    images: str

    def of(self, row: Mapping[str, Any], limits: tuple[int | None, ...]) -> list[int]:
        """Rows, tokens, images and bytes of a row; 0 of what has no limit."""
        _, tokens, images, size = limits
        return [
            1,
            0 if tokens is None else _tokens(self.tokens, row[self.tokens]),
            0 if images is None else _images(row[self.images]),
            0 if size is None else sum(_size(name, value) for name, value in row.items()),
        ]


def _tokens(name: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
        raise ConfigError(
            f"`{name}` has a {type(value).__name__}, which tells no number of tokens: expected lists of token ids, or "
            "counts, as the operator `token_count` writes them. Name the field with `tokens=`."
        )
    return len(value)


def _images(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(one is not None for one in value)
    return int(value is not None)


def _size(name: str, value: Any) -> int:
    match value:
        case None:
            return 0
        case bool():
            return 1
        case int() | float() | Decimal() | date() | datetime() | time() | timedelta():
            return 8
        case str():
            return len(value.encode("utf-8", "surrogatepass"))
        case bytes() | bytearray():
            return len(value)
        case Mapping():
            return sum(_size(name, one) for one in value.values())
        case list() | tuple():
            return sum(_size(name, one) for one in value)
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    raise ConfigError(
        f"`{name}` has a {type(value).__name__}, whose bytes are not known, so the cap of bytes cannot be counted. Cap "
        "rows instead, or convert the field before it is mixed."
    )
