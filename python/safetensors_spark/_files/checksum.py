"""The checksum that manifests have of their shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from crc32c import crc32c

_CHUNK = 8 << 20


def checksum(source: BinaryIO, each: Callable[[bytes], object] = len) -> tuple[int, str]:
    """Read a file to its end: its length, and its CRC-32C as in a manifest. `each` gets the bytes."""
    length = found = 0
    while chunk := source.read(_CHUNK):
        each(chunk)
        found = crc32c(chunk, found)
        length += len(chunk)
    return length, f"{found:08x}"
