"""Checks the rows of batches: whether shards agree in them, where ragged ones begin, and whether text is UTF-8."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from safetensors_spark._files.column_kinds import offsets_fault
from safetensors_spark._files.header import Header
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.tensors import TensorInfo

# The bytes of a file from one offset up to another.
Read = Callable[[int, int], bytes]

# The dtype and shape of the samples of some columns.
Samples = Mapping[str, tuple[str, tuple[int, ...]]]

_CHUNK = 1 << 23


def unrecorded(header: Header, columns: Iterable[Column]) -> Samples:
    """The samples of a shard in the columns of which the manifest does not say all."""
    unknown = [column.name for column in columns if not column.has_offsets and None in (column.dtype, column.shape)]
    tensors = filter(None, map(header.by_name.get, unknown))
    return {tensor.name: (tensor.dtype, tensor.shape[1:]) for tensor in tensors}


def differing(shards: Iterable[tuple[str, Samples]]) -> Iterator[tuple[str, str]]:
    """The first shard of each dtype and shape that differs from those before, and what is wrong with it."""
    seen: dict[str, dict[tuple[str, tuple[int, ...]], str]] = {}
    for file, samples in shards:
        for name, found in samples.items():
            known = seen.setdefault(name, {found: file})
            if found not in known:
                known[found] = file
                (other, first), *_ = known.items()
                yield (
                    file,
                    f"column `{name}` has samples of {_show(found)}, and of {_show(other)} in {first}: they cannot be "
                    "stacked. Write the dataset again with rows that are alike, or with the option `ragged`",
                )


def _show(sample: tuple[str, tuple[int, ...]]) -> str:
    return f"{sample[0]} {list(sample[1])}"


def against_offsets(header: Header, column: Column, samples: int, read: Read) -> Iterator[str]:
    """What is wrong with the rows of a column of the kind ragged, text or binary."""
    values, offsets = (header.by_name.get(name) for name in column.tensors)
    name = column.tensors[1]
    if offsets is None:
        yield f"it has no tensor `{name}`, which says where the rows of the column begin"
    elif offsets.dtype != "I64" or len(offsets.shape) != 1 or offsets.shape[0] <= samples:
        found = f"{offsets.dtype} {list(offsets.shape)}"
        yield f"tensor `{name}` is {found}, expected I64 [{samples + 1}] for {samples} samples"
    elif values is not None and values.shape:
        begins = np.frombuffer(_bytes(header, offsets, read, 0, offsets.bytes), "<i8")
        wrong = offsets_fault(begins, samples, values.shape[0])
        if wrong is None and column.kind == "text":
            wrong = _text(begins, lambda begin, end: _bytes(header, values, read, begin, end))
        if wrong is not None:
            yield f"tensor `{name}` {wrong}"


def _bytes(header: Header, tensor: TensorInfo, read: Read, begin: int, end: int) -> bytes:
    start = header.data_start + tensor.begin
    return read(start + begin, start + end) if begin < end else b""


def _text(offsets: Array, read: Read) -> str | None:
    """All bytes are UTF-8, and no row begins within a character: then each row is UTF-8."""
    decoder = getincrementaldecoder("utf-8")()
    length = int(offsets[-1])
    for begin in range(0, length, _CHUNK):
        chunk = read(begin, min(begin + _CHUNK, length))
        try:
            decoder.decode(chunk, begin + _CHUNK >= length)
        except UnicodeDecodeError as error:
            return f"has text that is not UTF-8, near byte {begin + error.start} of the values"
        inside = offsets[(offsets >= begin) & (offsets < begin + len(chunk))]
        split = inside[(np.frombuffer(chunk, np.uint8)[inside - begin] & 0xC0) == 0x80]
        if len(split):
            return f"splits a character at {split[0]}"
    return None
