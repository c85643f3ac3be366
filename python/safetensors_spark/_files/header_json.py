"""The JSON of a header, by the rules of the official library's parser."""

from __future__ import annotations

import json
import math
from typing import Any

from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.tensors import TensorInfo

METADATA = "__metadata__"

_U64 = 1 << 64
# What the library's JSON parser allows.
_DEEPEST = 127
_GREATEST_EXPONENT = 308


class _Members(list[tuple[str, Any]]):
    """A JSON object with all that it says, and how deep it is nested."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.height = 1 + max((_height(value) for _, value in pairs), default=0)


def _height(value: Any) -> int:
    if isinstance(value, _Members):
        return value.height
    return 1 + max(map(_height, value), default=0) if isinstance(value, list) else 0


def members_of(text: str) -> list[tuple[str, Any]]:
    """The names and values of a JSON object. Raises ValueError or RecursionError."""
    members = _JSON.decode(text)
    if not isinstance(members, _Members):
        raise ValueError("it is not a JSON object")
    if members.height > _DEEPEST:
        raise ValueError(f"nesting deeper than {_DEEPEST}")
    return members


def split_members(members: list[tuple[str, Any]]) -> tuple[dict[str, str], list[TensorInfo]]:
    """Metadata and tensors. Of a name that is twice the last counts. Raises ValueError for values of other types."""
    about = [value for name, value in members if name == METADATA]
    if len(about) > 1:
        raise ValueError(f"`{METADATA}` a second time")
    tensors = {name: tensor_of(name, value) for name, value in members if name != METADATA}
    return _metadata(about[0] if about else None), list(tensors.values())


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, _Members) or not all(isinstance(one, str) for _, one in value):
        raise ValueError(f"`{METADATA}` is not an object of strings")
    return dict(value)


def tensor_of(name: str, value: Any) -> TensorInfo:
    """The tensor of a member. Raises ValueError."""
    if isinstance(value, _Members):
        names = [field for field, _ in value]
        for field in ("dtype", "shape", "data_offsets"):
            if names.count(field) != 1:
                raise ValueError(f"tensor `{name}` has {names.count(field)} times `{field}`, expected once")
        fields = dict(value)
        dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    elif isinstance(value, list) and len(value) == 3:
        dtype, shape, offsets = value
    else:
        raise ValueError(f"tensor `{name}` is not an object")
    if isinstance(dtype, _Members) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"tensor `{name}` has an unknown dtype, {dtype!r:.100}")
    if not _are_sizes(shape):
        raise ValueError(f"tensor `{name}` has a shape that is not a list of 64-bit dimensions, {shape!r:.100}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"tensor `{name}` has data_offsets that are not two 64-bit numbers, {offsets!r:.100}")
    return TensorInfo(name, dtype, tuple(shape), *offsets)


def _are_sizes(value: Any) -> bool:
    return type(value) is list and all(type(size) is int and size < _U64 for size in value)


def _integer(text: str) -> Any:
    """A whole number without a sign is an integer; what has one, or is large beyond use, is merely a number."""
    return int(text) if text[0] != "-" and len(text) <= 20 else _number(text)


class _Number:
    """A number that is not an integer of 64 bits: it counts for nothing, and errors show it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _number(text: str) -> _Number:
    """A number that the library reads as a double, if that holds it.

    Its parser gathers as many digits as fit 64 bits, and multiplies them by a power of ten. Both steps round, so that a
    number close to the greatest double may be too large for it, and be none by exact arithmetic.
    """
    digits, _, exponent = text.lower().lstrip("-").partition("e")
    whole, _, fraction = digits.partition(".")
    value, taken = _gathered(whole, 0)
    more = len(whole) - taken
    value, taken = _gathered(fraction, value)
    power = (int(exponent[:12]) if exponent else 0) + more - taken
    if value and power > 0 and (power > _GREATEST_EXPONENT or math.isinf(float(value) * float(f"1e{power}"))):
        raise ValueError(f"the number {text[:30]} is out of range")
    return _Number(text)


def _gathered(digits: str, value: int) -> tuple[int, int]:
    """What the value becomes with the digits that still fit behind it, and how many those are."""
    for taken, digit in enumerate(digits):
        if value * 10 + int(digit) >= _U64:
            return value, taken
        value = value * 10 + int(digit)
    return value, len(digits)


def _constant(text: str) -> Any:
    raise ValueError(f"`{text}` is not JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_Members, parse_int=_integer, parse_float=_number, parse_constant=_constant)
