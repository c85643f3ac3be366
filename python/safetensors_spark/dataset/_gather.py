"""Rows of mapped memory, wherever they lie, copied into one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from safetensors_spark.dataset._shards import Array

# So many bytes take longer to copy than it takes Python to say so. Rows that are gathered are smaller, so that NumPy
# can count the bytes of an array of them over all of an address space.
LARGE = 64 << 10
# So many bytes stay in the processor's cache until they are copied again.
_CACHED = 512 << 10


class Span:
    """Pieces of memory, and all that lies between them. It keeps the pieces' maps."""

    def __init__(self, pieces: Sequence[Array]) -> None:
        addresses = [piece.__array_interface__["data"][0] for piece in pieces]
        self._pieces = pieces
        self._lowest = pieces[int(np.argmin(addresses))].reshape(-1)[:1]
        self._offsets = np.array(addresses) - min(addresses)

    def gather(self, which: Array, begins: Array, target: Array) -> None:
        """Copy rows of bytes into the rows of `target`, which are smaller than `LARGE`: many in one call of NumPy.

        They are taken for rows of an array over the whole span. Not all of it need be mapped: nothing of it is touched
        but these rows.

        Args:
            which: the piece that has each row.
            begins: the row's first byte in that piece.
        """
        width = target.shape[1]
        places = self._offsets[which] + begins
        span = as_strided(self._lowest, (int(places.max()) + 1, width), (1, 1))
        # NumPy gathers into memory of its own, which is to stay in the processor's cache.
        at_once = _CACHED // width + 1
        for begin in range(0, len(places), at_once):
            target[begin : begin + at_once] = span[places[begin : begin + at_once]]
