"""Compressed files, whose length is known."""

from __future__ import annotations

import bz2
import zlib

from safetensors_spark._errors import InvalidWriteError

# Of pyarrow, by the names that MosaicML's Streaming has.
_STREAMS = {"zstd": "zstd", "br": "brotli"}
COMPRESSIONS = ("gz", "bz2", *_STREAMS, "snappy")


def decompressed(content: bytes, compression: str, length: int, place: str) -> bytes:
    """What was compressed, which never takes more memory than it should.

    Args:
        length: of what was compressed.
        place: the file, for errors.

    Raises `InvalidWriteError` for damage, and for any other length.
    """
    try:
        found = _decompressed(content, compression, length)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InvalidWriteError(
            f"{place} cannot be decompressed as {compression} to {length} bytes, which it should have: {error}."
        ) from error
    if len(found) != length:
        raise InvalidWriteError(f"{place} has other than the {length} bytes that it should have, once decompressed.")
    return found


def _decompressed(content: bytes, compression: str, length: int) -> bytes:
    if compression == "gz":
        return zlib.decompressobj(wbits=31).decompress(content, length + 1)
    if compression == "bz2":
        return bz2.BZ2Decompressor().decompress(content, length + 1)
    import pyarrow as pa  # type: ignore[import-untyped]

    if compression == "snappy":
        if (said := _snappy_length(content)) != length:
            raise ValueError(f"it says that it has {said}")
        found: bytes = pa.Codec("snappy").decompress(content, length, asbytes=True)
        return found
    # Of a stream, since otherwise what is shorter comes with garbage behind it.
    with pa.CompressedInputStream(pa.BufferReader(content), _STREAMS[compression]) as stream:
        read: bytes = stream.read(length + 1)
        return read


def _snappy_length(content: bytes) -> int:
    """What the first bytes say: seven bits of the length in each, the lowest first, until one has no eighth bit."""
    length = 0
    for place, byte in enumerate(content[:5]):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return length
