"""Rows of mapped memory, wherever they lie, copied into one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from safetensors_spark._files.numpy_dtypes import Array

# So many bytes take longer to copy than it takes Python to say so. Rows that are gathered are smaller, so that NumPy
# can count the bytes of an array of them over all of an address space.
LARGE = 64 << 10
# So many bytes stay in the processor's cache until they are copied again.
CACHED = 512 << 10


class Rows:
    """Rows of bytes, all of one width below `LARGE`, that are copied many in one call of NumPy. It keeps their maps.

    They are taken for rows of one array over all the memory from the first to the last. Not all of that need be mapped:
    nothing of it is touched but these rows.
    """

    def __init__(
        self, pieces: Sequence[Array], which: Array, begins: Array, width: int, counts: Array | None = None
    ) -> None:
        """One row or more.

        Args:
            pieces: mapped memory.
            which: the piece that has each row.
            begins: the row's first byte in that piece.
            width: bytes of a row, one or more.
            counts: how many rows follow each other from each of these on, one or more; one by default.
        """
        places = np.array([_address(piece) for piece in pieces])[which] + begins
        first = int(places.argmin())
        self._begin = int(places[first])
        places -= self._begin
        start = pieces[which[first]].reshape(-1)[begins[first] : begins[first] + 1]
        steps = places // width
        # Rows of one shard lie a multiple of their width apart, and those of several do if their headers are alike.
        self._in_step = np.array_equal(steps * width, places)
        numbers, step = (steps, width) if self._in_step else (places, 1)
        self._numbers = numbers if counts is None else _following(numbers, counts, width // step)
        last = int(self._numbers.max())
        self._end = self._begin + last * step + width
        self._rows = as_strided(start, (last + 1, width), (step, 1))

    def __len__(self) -> int:
        return len(self._numbers)

    def copy(self, begin: int, end: int, target: Array) -> None:
        """Those from `begin` to before `end` into the rows of `target`."""
        # NumPy goes by the first and the last byte to see whether it copies to where it copies from.
        if self._in_step and not self._begin <= _address(target) < self._end:
            np.take(self._rows, self._numbers[begin:end], axis=0, out=target, mode="clip")
            return
        # Else it gathers into memory of its own.
        at = 0
        for piece in self.pieces(begin, end):
            target[at : at + len(piece)] = piece
            at += len(piece)

    def pieces(self, begin: int, end: int) -> Iterator[Array]:
        """Copies of them, of a number that stays in the processor's cache until it is copied again."""
        at_once = CACHED // self._rows.shape[1] + 1
        for some in range(begin, end, at_once):
            yield self._rows[self._numbers[some : min(some + at_once, end)]]


def _following(firsts: Array, counts: Array, step: int) -> Array:
    """From each of the firsts on so many numbers, a step apart."""
    ends = np.cumsum(counts)
    numbers = np.repeat(firsts - (ends - counts) * step, counts)
    numbers += np.arange(0, int(ends[-1]) * step, step)
    return numbers


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
