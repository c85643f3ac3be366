"""The checksum that manifests have of their shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

_CHUNK = 8 << 20


def checksum(source: BinaryIO, each: Callable[[bytes], object] = len) -> tuple[int, str]:
    """Read a file to its end: its length, and its CRC-32C as a manifest writes it. `each` takes the bytes on their way.

    The caller has made sure of the package `crc32c`, which it knows the extra of.
    """
    from crc32c import crc32c

    length = found = 0
    while chunk := source.read(_CHUNK):
        each(chunk)
        found = crc32c(chunk, found)
        length += len(chunk)
    return length, f"{found:08x}"
