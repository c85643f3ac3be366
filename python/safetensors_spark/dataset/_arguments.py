"""Arguments that are what they should be."""

from __future__ import annotations

from operator import index
from typing import Any


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """The argument as a whole number. Raises `TypeError` for what is none, and `ValueError` for one out of range."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r:.100}, expected a whole number")
    if (least is not None and number < least) or (most is not None and number > most):
        raise ValueError(f"{name} is {number}, expected {least}{' or more' if most is None else f' to {most}'}")
    return number
