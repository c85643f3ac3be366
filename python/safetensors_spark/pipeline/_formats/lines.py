"""Lines of files, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

# Bytes that are read at a time.
_READ_BYTES = 256 << 10


def lines_of(file: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[list[bytes]]:
    """The lines that begin in a range of bytes, in order, without their ends."""
    # The byte before the range tells whether a line begins with it.
    place = max(0, start - 1)
    if place:
        file.seek(place)
    for block in _blocks(file):
        content = block
        if place < start:
            content = content[content.find(b"\n") + 1 or len(content) :]
        place += len(block)
        begin = place - len(content)
        if end is not None and place >= end:
            last = content.find(b"\n", max(0, end - 1 - begin)) if begin < end else -1
            content = b"" if begin >= end else content[: last + 1 or None]
        if content:
            yield content.removesuffix(b"\n").split(b"\n")
        if end is not None and place >= end:
            return


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Bytes of whole lines; the last one may have no end."""
    parts: list[bytes] = []
    while some := file.read(_READ_BYTES):
        cut = some.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, some[:cut]])
            parts = []
        parts.append(some[cut:])
    if rest := b"".join(parts):
        yield rest


def count_lines(file: BinaryIO, end: int) -> int:
    """How many lines begin in the first bytes of a file, where another one begins behind them."""
    return sum(len(lines) for lines in lines_of(file, 0, end))
