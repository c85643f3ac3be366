"""Megatron's token files: the tokens of all sequences in `.bin`, their lengths in `.idx`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._convert.source import Part, Rows, Source, reading, split
from safetensors_spark._errors import InvalidWriteError
from safetensors_spark.dataset import Ragged

_MAGIC = b"MMIDIDX\0\0"
_DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
_HEADER = len(_MAGIC) + 8 + 1 + 8 + 8
_TOKENS = 16 << 20


@dataclass(frozen=True)
class _Sequences(Part):
    tokens: Path
    index: Path
    start: int
    end: int

    def rows(self) -> Iterator[Rows]:
        with reading(self.index):
            dtype, lengths, pointers = _read(self.index)
        with reading(self.tokens):
            tokens = np.memmap(self.tokens, dtype, "r")
        self._check(dtype, lengths[self.start : self.end], pointers[self.start : self.end], len(tokens))
        start = self.start
        while start < self.end:
            ends = np.cumsum(lengths[start : self.end], dtype=np.int64)
            count = max(1, int(np.searchsorted(ends, _TOKENS, "right")))
            of_batch = slice(start, start + count)
            starts = pointers[of_batch] // dtype.itemsize
            offsets = np.concatenate([np.zeros(1, np.int64), ends[:count]])
            yield Rows(
                self.index, start, {"tokens": Ragged(_joined(tokens, starts, lengths[of_batch], offsets), offsets)}
            )
            start += count

    def _check(self, dtype: np.dtype[Any], lengths: Any, pointers: Any, count: int) -> None:
        wrong = (
            (pointers % dtype.itemsize != 0)
            | (pointers < 0)
            | (lengths < 0)
            | (pointers // dtype.itemsize > count - lengths.astype(np.int64))
        )
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidWriteError(
                f"{self.index}: sequence {self.start + at} has {lengths[at]} tokens from byte {pointers[at]} on, which "
                f"are not whole tokens of {self.tokens}, with {count} of {dtype.itemsize} bytes each. Copy both again."
            )


def _joined(tokens: Any, starts: Any, lengths: Any, offsets: Any) -> Any:
    """The tokens of sequences, which mostly lie one after the other in the file."""
    if np.array_equal(starts - starts[0], offsets[:-1]):
        return np.asarray(tokens[starts[0] : starts[0] + offsets[-1]])
    parts = [tokens[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]
    return np.concatenate(parts)


def _read(index: Path) -> tuple[np.dtype[Any], Any, Any]:
    """The dtype of the tokens, and the length and the first byte of each sequence."""
    content = np.memmap(index, np.uint8, "r")
    code = int(content[len(_MAGIC) + 8])
    if content[: len(_MAGIC)].tobytes() != _MAGIC or code not in _DTYPES:
        raise InvalidWriteError(f"{index} is not an index of Megatron that is known: dtype {code}.")
    count = int(content[_HEADER - 16 : _HEADER - 8].view("<u8")[0])
    if len(content) < _HEADER + 12 * count:
        raise InvalidWriteError(
            f"{index} is truncated: it has {len(content)} bytes, and {count} sequences take {_HEADER + 12 * count}. "
            "Copy it again."
        )
    lengths = content[_HEADER : _HEADER + 4 * count].view("<i4")
    pointers = content[_HEADER + 4 * count : _HEADER + 12 * count].view("<i8")
    return np.dtype(_DTYPES[code]), lengths, pointers


@dataclass(frozen=True)
class MegatronSource(Source):
    tokens: Path
    index: Path

    def parts(self, count: int) -> Sequence[Part]:
        with reading(self.index):
            dtype, lengths, _ = _read(self.index)
        return [
            _Sequences(
                int(lengths[start:end].sum(dtype=np.int64)) * dtype.itemsize, self.tokens, self.index, start, end
            )
            for start, end in split(len(lengths), count)
        ]

    def ragged(self) -> Collection[str]:
        return ["tokens"]


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    if path.suffix not in (".bin", ".idx", ""):
        return None
    tokens, index = path.with_suffix(".bin"), path.with_suffix(".idx")
    return MegatronSource(tokens, index) if tokens.is_file() and index.is_file() else None
