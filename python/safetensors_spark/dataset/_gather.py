"""Rows of mapped memory, wherever they lie, copied into one array."""

from __future__ import annotations

from numpy.lib.stride_tricks import as_strided

from safetensors_spark.dataset._shards import Array

# So many bytes take longer to copy than it takes Python to say so. Rows that are gathered are smaller, so that NumPy
# can count the bytes of an array of them over all of an address space.
LARGE = 64 << 10
# So many bytes stay in the processor's cache until they are copied again.
_CACHED = 512 << 10


def address(memory: Array) -> int:
    """That of an array's first byte."""
    found: int = memory.__array_interface__["data"][0]
    return found


def gather(lowest: Array, places: Array, target: Array) -> None:
    """Copy rows of bytes into the rows of `target`, which are smaller than `LARGE`: many in one call of NumPy.

    They are taken for rows of an array over the span of memory that has them all. Not all of that span need be mapped:
    nothing of it is touched but these rows, whose maps the caller keeps.

    Args:
        lowest: memory that none of the rows lies before.
        places: where the rows begin, in bytes from the address of `lowest`.
    """
    width = target.shape[1]
    span = as_strided(lowest[:1], (int(places.max()) + 1, width), (1, 1))
    # NumPy gathers into memory of its own, which is to stay in the processor's cache.
    at_once = _CACHED // width + 1
    for begin in range(0, len(places), at_once):
        target[begin : begin + at_once] = span[places[begin : begin + at_once]]
