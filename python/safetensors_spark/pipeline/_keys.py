"""Keys of rows: in which order they are, and in which shard. Both are the same in every process."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

from safetensors_spark._errors import PipelineError

_NONE, _NUMBER, _TEXT, _BYTES, _TUPLE, _NAN = range(6)


def order_of(key: Any) -> tuple[Any, ...]:
    """What keys are sorted by: keys of one kind as Python does, None and numbers before text.

    Equal keys, such as 1 and 1.0, have equal orders, and NaN is equal to NaN.
    """
    if isinstance(key, str):
        # An `Enum` of text says something else of itself than it is equal to.
        return _TEXT, str.__str__(key)
    if isinstance(key, int):
        return _NUMBER, int(key)
    if isinstance(key, float):
        return (_NAN,) if math.isnan(key) else (_NUMBER, float(key))
    if key is None:
        return (_NONE,)
    if isinstance(key, bytes):
        return _BYTES, bytes(key)
    if isinstance(key, tuple | list):
        return _TUPLE, tuple(map(order_of, key))
    if hasattr(key, "item") and getattr(key, "ndim", None) == 0:
        return order_of(key.item())
    raise PipelineError(
        f"a key is a {type(key).__name__}: {key!r:.100}. A key is None, a number, text, bytes, or a tuple of these."
    )


def partition_of(order: tuple[Any, ...], count: int) -> int:
    """The shard of a key, by its order."""
    if count == 1:
        return 0
    return int.from_bytes(blake2b(_canonical(order), digest_size=8).digest(), "little") % count


def _canonical(order: tuple[Any, ...]) -> bytes:
    kind = order[0]
    if kind == _TEXT:
        return b"t" + str(order[1]).encode("utf-8", "surrogatepass")
    if kind == _NUMBER:
        number = order[1]
        # Equal numbers are equal bytes.
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        return b"n" + repr(number).encode()
    if kind == _BYTES:
        return b"b" + bytes(order[1])
    if kind == _TUPLE:
        parts = [_canonical(one) for one in order[1]]
        return b"(" + b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return b"0" if kind == _NONE else b"x"
