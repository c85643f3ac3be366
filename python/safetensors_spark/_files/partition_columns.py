"""Columns of folders named `key=value`: their types and values are those that Spark infers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

import numpy as np

from safetensors_spark._files.manifest import Column, Kind

# What Spark writes for a null.
NULL = "__HIVE_DEFAULT_PARTITION__"

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(_DAY.pattern + r"( [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?")


def parse(folder: str) -> tuple[str, str] | None:
    """The column and the value of a folder such as `day=2026-11-21`; None for other names."""
    name, equals, value = folder.partition("=")
    return (_unescaped(name), _unescaped(value)) if name and equals else None


def column(name: str, texts: Sequence[str]) -> tuple[Column, list[bytes | None]]:
    """The column of these values, by the narrowest type that has all of them, and its bytes for each.

    A null is None. Times are as they are written, without a time zone. Whole numbers beyond 64 bits are text, as are
    values without a type in common.
    """
    known = [text for text in dict.fromkeys(texts) if text != NULL]
    for dtype, kind, encode in _TYPES:
        encoded = {text: encode(text) for text in known}
        if known and None not in encoded.values() and (dtype != "F64" or _is_exact(known)):
            found = Column(name, dtype, (), kind)
            break
    else:
        encoded = {text: text.encode("utf-8", "surrogateescape") for text in known}
        found = Column(name, "U8", (), "text")
    return found, [encoded.get(text) for text in texts]


def _unescaped(text: str) -> str:
    """As Spark has it: each escape is a character by its code."""
    return re.sub("%([0-9a-fA-F]{2})", lambda escape: chr(int(escape[1], 16)), text)


def _is_exact(texts: Sequence[str]) -> bool:
    """Whether doubles lose nothing: whole numbers among them must be of 32 bits."""
    return all(_whole("<i4")(text) is not None for text in texts if _WHOLE.fullmatch(text))


def _whole(dtype: str) -> Callable[[str], bytes | None]:
    def encode(text: str) -> bytes | None:
        # Longer ones are none of 64 bits, unless they begin with zeros, which Python may refuse to count.
        digits = text.lstrip("+-").lstrip("0") or "0"
        if not _WHOLE.fullmatch(text) or len(digits) > 19:
            return None
        number = -int(digits) if text.startswith("-") else int(digits)
        limits = np.iinfo(dtype)
        return np.array(number, dtype).tobytes() if limits.min <= number <= limits.max else None

    return encode


def _double(text: str) -> bytes | None:
    return np.array(float(text), "<f8").tobytes() if _NUMBER.fullmatch(text) else None


def _date(text: str) -> bytes | None:
    try:
        days = (date.fromisoformat(text) - date(1970, 1, 1)).days if _DAY.fullmatch(text) else None
    except ValueError:
        return None
    return None if days is None else np.array(days, "<i4").tobytes()


def _time(text: str) -> bytes | None:
    if not _MOMENT.fullmatch(text):
        return None
    whole, _, fraction = text.partition(".")
    try:
        passed = datetime.fromisoformat(whole) - datetime(1970, 1, 1)
    except ValueError:
        return None
    micros = passed // timedelta(microseconds=1) + int(fraction.ljust(6, "0"))
    return np.array(micros, "<i8").tobytes()


# In the order in which they are tried.
_TYPES: Sequence[tuple[str, Kind, Callable[[str], bytes | None]]] = (
    ("I32", "fixed", _whole("<i4")),
    ("I64", "fixed", _whole("<i8")),
    ("F64", "fixed", _double),
    ("I32", "date", _date),
    ("I64", "timestamp_ntz", _time),
)
