"""The header of a safetensors file, taken and refused as the official library does (`safetensors/src/tensor.rs`).

No byte of the byte buffer is looked at, and nothing is made of a size or an offset before it is checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safetensors_spark._errors import InvalidFileError
from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.json_text import check_surrogates

# Bits of an element.
DTYPES: Mapping[str, int] = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

_PREFIX = 8
_MAX_SIZE = 100_000_000
_FIRST_READ = 64 * 1024
_METADATA = "__metadata__"
_U64 = 1 << 64
# What the library's JSON parser allows.
_DEEPEST = 127
_GREATEST_EXPONENT = 308


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of a header. `begin` and `end` are bytes of the byte buffer, not of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Header:
    """A header that holds. Its tensors, in the order of their bytes, fill the byte buffer from `data_start` on."""

    metadata: Mapping[str, str]
    tensors: tuple[TensorInfo, ...]
    data_start: int

    @cached_property
    def by_name(self) -> Mapping[str, TensorInfo]:
        return {tensor.name: tensor for tensor in self.tensors}


def read_header(read: Callable[[int, int], bytes], length: int, file: str) -> Header:
    """Read the header of a file in at most two calls of `read(start, end)`.

    Args:
        read: gives the file's bytes from `start` to before `end`.
        length: how many bytes the file has.
        file: what errors call it.

    Raises `InvalidFileError` for a file that the official library refuses. Of a name that stands twice the last counts.
    """
    if length < _PREFIX:
        raise InvalidFileError(file, "HeaderTooSmall", f"it has {length} bytes, expected 8 or more")
    first = read(0, min(length, _FIRST_READ))
    size = int.from_bytes(first[:_PREFIX], "little")
    end = _PREFIX + size
    if size > _MAX_SIZE:
        raise InvalidFileError(file, "HeaderTooLarge", f"its header has {size} bytes, at most {_MAX_SIZE} are allowed")
    if end > length:
        raise InvalidFileError(file, "InvalidHeaderLength", f"its header ends at byte {end}, but it has {length} bytes")
    content = first[_PREFIX:end] if end <= len(first) else first[_PREFIX:] + read(len(first), end)
    if len(content) != size:
        raise InvalidFileError(file, "InvalidHeaderLength", f"it ends within its header, at byte {8 + len(content)}")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InvalidFileError(file, "InvalidHeader", "its header is not UTF-8") from None
    try:
        metadata, tensors = _parse(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(file, "InvalidHeaderDeserialization", str(error)) from None
    return Header(metadata, tuple(_in_order(tensors, length - end, file)), end)


class _Members(list[tuple[str, Any]]):
    """A JSON object with all that it says, and how deep it is nested."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.height = 1 + max((_height(value) for _, value in pairs), default=0)


def _height(value: Any) -> int:
    if isinstance(value, _Members):
        return value.height
    return 1 + max(map(_height, value), default=0) if isinstance(value, list) else 0


def _parse(text: str) -> tuple[dict[str, str], dict[str, TensorInfo]]:
    """Metadata, and tensors by name. Raises ValueError for what the library's types do not take."""
    check_surrogates(text)
    members = _JSON.decode(text)
    if not isinstance(members, _Members):
        raise ValueError("it is not a JSON object")
    if members.height > _DEEPEST:
        raise ValueError(f"nesting deeper than {_DEEPEST}")
    about = [value for name, value in members if name == _METADATA]
    if len(about) > 1:
        raise ValueError(f"`{_METADATA}` a second time")
    tensors = {name: _tensor(name, value) for name, value in members if name != _METADATA}
    return _metadata(about[0] if about else None), tensors


def _metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, _Members) or not all(isinstance(one, str) for _, one in value):
        raise ValueError(f"`{_METADATA}` is not an object of strings")
    return dict(value)


def _tensor(name: str, value: Any) -> TensorInfo:
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
        raise ValueError(f"tensor `{name}` is no object")
    if isinstance(dtype, _Members) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"tensor `{name}` has an unknown dtype, {dtype!r:.100}")
    if not _are_sizes(shape):
        raise ValueError(f"tensor `{name}` has a shape that is no list of 64-bit dimensions, {shape!r:.100}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"tensor `{name}` has data_offsets that are not two 64-bit numbers, {offsets!r:.100}")
    return TensorInfo(name, dtype, tuple(shape), *offsets)


def _are_sizes(value: Any) -> bool:
    return type(value) is list and all(type(size) is int and size < _U64 for size in value)


def _integer(text: str) -> Any:
    """A whole number without a sign is an integer; what has one, or is large beyond use, is merely a number."""
    return int(text) if text[0] != "-" and len(text) <= 20 else _number(text)


def _number(text: str) -> float:
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
    return math.nan


def _gathered(digits: str, value: int) -> tuple[int, int]:
    """What the value becomes with the digits that still fit behind it, and how many those are."""
    for taken, digit in enumerate(digits):
        if value * 10 + int(digit) >= _U64:
            return value, taken
        value = value * 10 + int(digit)
    return value, len(digits)


def _constant(text: str) -> Any:
    raise ValueError(f"`{text}` is no JSON")


_JSON = json.JSONDecoder(object_pairs_hook=_Members, parse_int=_integer, parse_float=_number, parse_constant=_constant)


def _in_order(tensors: Mapping[str, TensorInfo], buffer: int, file: str) -> Iterator[TensorInfo]:
    """The tensors in the order of their bytes, checked as by `Metadata::validate`; the buffer has so many bytes."""
    position = 0
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.begin, tensor.end)):
        name = f"tensor `{tensor.name}`"
        if tensor.begin != position:
            raise InvalidFileError(file, "InvalidOffset", f"{name} begins at byte {tensor.begin}, expected {position}")
        if tensor.end < tensor.begin:
            raise InvalidFileError(file, "InvalidOffset", f"{name} ends at byte {tensor.end}, before it begins")
        bits = _bits(tensor)
        if bits is None:
            detail = f"{name} has the shape {list(tensor.shape)}, too large for 64 bits"
            raise InvalidFileError(file, "ValidationOverflow", detail)
        if bits % 8:
            what = f"{name} has {bits} bits, which is not a whole number of bytes"
            raise InvalidFileError(file, "MisalignedSlice", what)
        if tensor.bytes != bits // 8:
            detail = (
                f"{name} has {tensor.bytes} bytes, but shape {list(tensor.shape)} of {tensor.dtype} takes {bits // 8}"
            )
            raise InvalidFileError(file, "TensorInvalidInfo", detail)
        position = tensor.end
        yield tensor
    if position != buffer:
        detail = f"its tensors end at byte {position} of the byte buffer, which has {buffer} bytes"
        raise InvalidFileError(file, "MetadataIncompleteBuffer", detail)


def _bits(tensor: TensorInfo) -> int | None:
    """Bits of all elements; None if a product on the way, from left to right, does not fit 64 bits."""
    product = 1
    for factor in (*tensor.shape, DTYPES[tensor.dtype]):
        product *= factor
        if product >= _U64:
            return None
    return product
