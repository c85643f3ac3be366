"""Numbers as other dtypes, with the values, bytes and limits of Spark's writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array, dtype_name, numpy_dtype

Rounding = Literal["truncate", "nearest_even"]

# What numbers can be written as.
TARGETS = (
    "F16", "F32", "F64", "BF16", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "BOOL", "F8_E4M3", "F8_E5M2",
)  # fmt: skip

_BLOCK = 1 << 16
_SIGN = np.uint64(1 << 63)
_INFINITY = np.uint64(0x7FF << 52)
_MANTISSA = np.uint64((1 << 52) - 1)


class UnencodableValueError(ValueError):
    """A number that a dtype cannot hold. `index` is its place in the flattened array."""

    def __init__(self, values: Array, index: int, dtype: str) -> None:
        super().__init__(f"{dtype} cannot hold {values.reshape(-1)[index]}: it holds {_limits(dtype)}")
        self.index = index


@dataclass(frozen=True)
class _Small:
    """A float of one or two bytes.

    Attributes:
        mantissa: the bits after the implicit one.
        least: the exponent of the smallest normal number, as a power of two.
        largest: the bits that numbers beyond the range become; None if they are errors.
        bits: of an element.
    """

    mantissa: int
    least: int
    largest: int | None
    bits: int


_SMALL = {
    "F16": _Small(10, -14, None, 16),
    "BF16": _Small(7, -126, None, 16),
    # As PyTorch saturates: to 448, and to infinity.
    "F8_E4M3": _Small(3, -6, 0x7E, 8),
    "F8_E5M2": _Small(2, -14, 0x7C, 8),
}


def encoded(values: Array, dtype: str, rounding: Rounding) -> Array:
    """The numbers as one of `TARGETS`. Integers lose the fraction of a float; `rounding` is that of F16 and BF16.

    Raises `UnencodableValueError` for the first number that the dtype cannot hold.
    """
    if dtype_name(values.dtype) == dtype:
        return values
    if values.dtype.kind == "V":
        values = values.astype(np.float32)
    if dtype in _SMALL:
        return _as_small(values, dtype, _SMALL[dtype], rounding == "nearest_even")
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype in ("F32", "F64"):
            found = values.astype(numpy_dtype(dtype))
            if dtype == "F32" and values.dtype.kind == "f":
                _check(values, np.isinf(found) & ~np.isinf(values), dtype)
            return found
        _check(values, _beyond(values, *_range(dtype)), dtype)
        return (np.trunc(values) if values.dtype.kind == "f" else values).astype(numpy_dtype(dtype))


def _check(values: Array, wrong: Array, dtype: str) -> None:
    if wrong.any():
        raise UnencodableValueError(values, int(wrong.reshape(-1).argmax()), dtype)


def _beyond(values: Array, least: int, most: int) -> Array:
    """Where a number without its fraction is out of the range, or none."""
    if values.dtype.kind == "f":
        whole = np.trunc(values.astype(np.float64))
        # The number after the largest is a power of two, which floats have.
        return ~((whole >= least) & (whole < float(most + 1)))
    own = _range(dtype_name(values.dtype))
    wrong = np.zeros(values.shape, bool)
    if own[0] < least:
        wrong |= values < least
    if own[1] > most:
        wrong |= values > most
    return wrong


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "BOOL":
        return 0, 1
    limits = np.iinfo(numpy_dtype(dtype))
    return int(limits.min), int(limits.max)


def _as_small(values: Array, dtype: str, small: _Small, nearest: bool) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    found = np.empty(len(flat), f"<u{small.bits // 8}")
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        bits, wrong = _bits_of(_doubles(block), small, nearest or small.bits == 8)
        if wrong.any():
            raise UnencodableValueError(flat, start + int(wrong.argmax()), dtype)
        found[start : start + _BLOCK] = bits
    return found.view(numpy_dtype(dtype)).reshape(values.shape)


def _doubles(values: Array) -> Array:
    """Exact, or with the last bit odd where bits are lost, so that another rounding is as one alone."""
    if values.dtype.kind == "f" or values.dtype.itemsize < 8:
        return values.astype(np.float64)
    is_negative = values < 0
    magnitude = np.where(is_negative, ~values.astype(np.uint64) + np.uint64(1), values.astype(np.uint64))
    is_large = magnitude >= np.uint64(1 << 53)
    lost = (magnitude & np.uint64(0x7FF)) != 0
    odd = ((magnitude >> np.uint64(11)) | lost.astype(np.uint64)) << np.uint64(11)
    exact = np.where(is_large, odd, magnitude).astype(np.float64)
    return np.where(is_negative, -exact, exact)


def _bits_of(values: Array, small: _Small, nearest: bool) -> tuple[Array, Array]:
    """The bits of small floats, and where a number is beyond them."""
    bits = values.view(np.uint64)
    magnitude = bits & ~_SIGN
    infinity = (1 << (small.bits - 1)) - 1 >> small.mantissa << small.mantissa
    rounded = _rounded(magnitude, small, nearest)
    if small.largest is not None:
        found = np.minimum(rounded, np.uint64(small.largest))
        found[magnitude > _INFINITY] = 0x7F
        wrong = np.zeros(len(values), bool)
    else:
        found = rounded
        wrong = (rounded >= infinity) & (magnitude < _INFINITY)
        found[magnitude == _INFINITY] = infinity
        payload = (magnitude >> np.uint64(52 - small.mantissa)) & np.uint64((1 << small.mantissa) - 1)
        quiet = np.uint64(infinity | 1 << (small.mantissa - 1))
        is_nan = magnitude > _INFINITY
        found[is_nan] = quiet | payload[is_nan]
    sign = (bits & _SIGN) >> np.uint64(64 - small.bits)
    return found | sign, wrong


def _rounded(magnitude: Array, small: _Small, nearest: bool) -> Array:
    """The magnitudes after one rounding, as if there were more exponents. Subnormal ones lose a bit for each step."""
    shift, least = 52 - small.mantissa, small.least + 1023
    is_normal = magnitude >= np.uint64(least << 52)
    exponent = (magnitude >> np.uint64(52)).astype(np.int64)
    # After 54 bits nothing is left.
    cut = np.where(is_normal, shift, np.minimum(shift + least - exponent, 54)).astype(np.uint64)
    significand = (magnitude & _MANTISSA) | np.uint64(1 << 52)
    kept = np.where(is_normal, magnitude - np.uint64((least - 1) << 52), significand)
    if nearest:
        kept = kept + ((np.uint64(1) << (cut - np.uint64(1))) - np.uint64(1)) + ((kept >> cut) & np.uint64(1))
    found: Array = kept >> cut
    return found


def _limits(dtype: str) -> str:
    largest: dict[str, Any] = {
        "F16": "65504", "BF16": "3.3895314e+38", "F32": "3.4028235e+38", "F64": "1.7976931348623157e+308",
    }  # fmt: skip
    if dtype in largest:
        return f"finite values up to {largest[dtype]} either way"
    least, most = _range(dtype)
    return f"whole numbers from {least} to {most}"
