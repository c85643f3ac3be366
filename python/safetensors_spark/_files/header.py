"""The header of a safetensors file, taken and refused as the official library does (`safetensors/src/tensor.rs`).

No byte of the byte buffer is looked at, and nothing is made of a size or an offset before it is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from safetensors_spark._errors import InvalidFileError
from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.header_json import members_of, split_members
from safetensors_spark._files.header_text import parse_usual
from safetensors_spark._files.json_text import check_surrogates
from safetensors_spark._files.tensors import TensorInfo, Tensors, columns_of

_PREFIX = 8
_MAX_SIZE = 100_000_000
_FIRST_READ = 64 * 1024
_U64 = 1 << 64


@dataclass(frozen=True)
class Header:
    """A header that holds. Its tensors, in the order of their bytes, fill the byte buffer from `data_start` on."""

    metadata: Mapping[str, str]
    tensors: Tensors
    data_start: int

    @property
    def by_name(self) -> Mapping[str, TensorInfo]:
        return self.tensors.by_name


def read_header(read: Callable[[int, int], bytes], length: int, file: str) -> Header:
    """Read the header of a file in at most two calls of `read(start, end)`.

    Args:
        read: gives the file's bytes from `start` to before `end`.
        length: how many bytes the file has.
        file: what errors call it.

    Raises `InvalidFileError` for a file that the official library refuses. If a name occurs twice, the last one counts.
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
    return Header(metadata, _checked(tensors, length - end, file), end)


def _parse(text: str) -> tuple[dict[str, str], Tensors]:
    """Metadata and tensors. Raises ValueError for what the library's types do not take."""
    check_surrogates(text)
    if usual := parse_usual(text):
        return usual
    metadata, tensors = split_members(members_of(text))
    return metadata, columns_of(tensors)


def _checked(tensors: Tensors, buffer: int, file: str) -> Tensors:
    """The tensors in the order of their bytes, checked as by `Metadata::validate`; the buffer has so many bytes."""
    # Offsets beyond 63 bits are not in any file.
    if tensors.begins.dtype != object:
        if (tensors.begins[1:] < tensors.ends[:-1]).any():
            tensors = tensors.take(np.lexsort((tensors.ends, tensors.begins)))
        if _fill(tensors, buffer):
            return tensors
    raise _fault(tensors, buffer, file)


def _fill(tensors: Tensors, buffer: int) -> bool:
    """Whether the tensors have the bytes that their shapes take, and fill the buffer without gaps."""
    bits = [_bits(*kind) for kind in tensors.kinds]
    sizes = np.array([-1 if one is None or one % 8 else one // 8 for one in bits], np.int64)
    first, last = (int(tensors.begins[0]), int(tensors.ends[-1])) if len(tensors) else (0, 0)
    return bool(
        (tensors.ends - tensors.begins == sizes[tensors.kind_of]).all()
        and (tensors.begins[1:] == tensors.ends[:-1]).all()
        and (first, last) == (0, buffer)
    )


def _fault(tensors: Tensors, buffer: int, file: str) -> InvalidFileError:
    """What is wrong with the first tensor that is wrong."""
    position = 0
    for tensor in sorted(tensors, key=lambda tensor: (tensor.begin, tensor.end)):
        if fault := _fault_of(tensor, position):
            rule, what = fault
            return InvalidFileError(file, rule, f"tensor `{tensor.name}` {what}")
        position = tensor.end
    detail = f"its tensors end at byte {position} of the byte buffer, which has {buffer} bytes"
    return InvalidFileError(file, "MetadataIncompleteBuffer", detail)


def _fault_of(tensor: TensorInfo, position: int) -> tuple[str, str] | None:
    """The rule that the tensor breaks, and how; it should begin at the position."""
    if tensor.begin != position:
        return "InvalidOffset", f"begins at byte {tensor.begin}, expected {position}"
    if tensor.end < tensor.begin:
        return "InvalidOffset", f"ends at byte {tensor.end}, before it begins"
    bits = _bits(tensor.dtype, tensor.shape)
    if bits is None:
        return "ValidationOverflow", f"has the shape {list(tensor.shape)}, too large for 64 bits"
    if bits % 8:
        return "MisalignedSlice", f"has {bits} bits, which is not a whole number of bytes"
    if tensor.bytes != bits // 8:
        takes = f"but shape {list(tensor.shape)} of {tensor.dtype} takes {bits // 8}"
        return "TensorInvalidInfo", f"has {tensor.bytes} bytes, {takes}"
    return None


def _bits(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Bits of all elements; None if a product on the way, from left to right, does not fit 64 bits."""
    product = 1
    for factor in (*shape, DTYPES[dtype]):
        product *= factor
        if product >= _U64:
            return None
    return product
