"""Samples to load: random bytes from a seed, in a file that every contender's are written from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SHARD_BYTES = 256 << 20
PIECE_BYTES = 16 << 20


@dataclass(frozen=True)
class Samples:
    """Samples `x`, each with a number for a `label`.

    Attributes:
        shape: Of one `x`.
        dtype: Of `x`, as NumPy names it.
        count: How many there are.
        batch: How many of them a batch has.
        folder: Where `x.npy` and `label.npy` are, and a folder for each contender.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    batch: int
    folder: Path

    @property
    def bytes_each(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    @property
    def shard(self) -> int:
        """Samples of a shard, a multiple of those of a batch."""
        return max(1, SHARD_BYTES // self.bytes_each // self.batch) * self.batch

    def x(self) -> Array:
        mapped = np.load(self.folder / "x.npy", mmap_mode="r")
        # Without the subclass, which costs a microsecond each time it is indexed.
        return np.asarray(mapped)

    def labels(self) -> Array:
        return np.asarray(np.load(self.folder / "label.npy"))

    def pieces(self, size: int) -> Iterator[tuple[int, Array, Array]]:
        """All samples in their order, `size` at a time, each piece with its number."""
        x, labels = self.x(), self.labels()
        for number, begin in enumerate(range(0, self.count, size)):
            yield number, x[begin : begin + size], labels[begin : begin + size]

    @property
    def checked(self) -> int:
        """How many samples of an epoch are checked."""
        return self.count

    def is_checked(self, shuffled: bool, workers: int) -> bool:
        return True

    def expected(self, count: int) -> tuple[int, ...]:
        """What `totals` finds in the first samples, so many."""
        return self.totals([{"x": self.x()[:count], "label": self.labels()[:count]}]) if count == self.count else ()

    def totals(self, batches: Iterable[dict[str, Any]]) -> tuple[int, ...]:
        """Samples, the sum of their labels, and of their bytes by words of eight, modulo 2^64, in any order."""
        count, labels, words = 0, 0, 0
        for batch in batches:
            x, label = (np.asarray(batch[name]) for name in ("x", "label"))
            count += len(label)
            labels += int(label.sum())
            words += int(np.add.reduce(x.reshape(-1).view(np.uint64)))
        return count, labels, words % (1 << 64)

    def make(self) -> None:
        """Write `x.npy` and `label.npy`: random bits, of which floats are made between -1 and 1."""
        random = np.random.default_rng(0)
        np.save(self.folder / "label.npy", random.integers(0, 1000, self.count))
        x = np.lib.format.open_memmap(self.folder / "x.npy", "w+", np.dtype(self.dtype), (self.count, *self.shape))
        step = max(1, PIECE_BYTES // self.bytes_each)
        for begin in range(0, self.count, step):
            part = x[begin : begin + step]
            if self.dtype == "uint8":
                part[:] = random.integers(0, 256, part.shape, np.uint8)
            else:
                part[:] = random.random(part.shape, np.float32) * 2 - 1
        x.flush()


def images(size: int, folder: Path) -> Samples:
    """As many as have `size` bytes, and whole batches of them."""
    return Samples("images", (3, 224, 224), "uint8", max(1, size // 150528 // 64) * 64, 64, folder)


def embeddings(size: int, folder: Path) -> Samples:
    return Samples("embeddings", (1024,), "float32", max(1, size // 4096 // 1024) * 1024, 1024, folder)
