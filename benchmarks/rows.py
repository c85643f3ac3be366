"""Rows of different lengths to load: sequences of tokens, and the bytes of JPEG files."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.samples import SHARD_BYTES, Array

# Images that are encoded; rows are these, again and again.
_IMAGES = 1000


@dataclass(frozen=True)
class Rows:
    """Rows `x`, each with a number for a `label`.

    A batch of tokens is one tensor of all values, and where each row begins and the last one ends, as FlashAttention
    takes them. A batch of files is a list of `bytes`, as decoders take them.

    Attributes:
        dtype: Of the values, as NumPy names it.
        count: How many rows there are.
        batch: How many of them a batch has.
        packed: Whether a batch is one tensor.
        folder: Where `values.npy`, `offsets.npy` and `label.npy` are, and a folder for each contender.
    """

    name: str
    dtype: str
    count: int
    batch: int
    packed: bool
    folder: Path

    def values(self) -> Array:
        return np.asarray(np.load(self.folder / "values.npy", mmap_mode="r"))

    def offsets(self) -> Array:
        return np.asarray(np.load(self.folder / "offsets.npy"))

    def labels(self) -> Array:
        return np.asarray(np.load(self.folder / "label.npy"))

    def rows(self) -> Iterator[tuple[Array, int]]:
        values, places = self.values(), pairwise(self.offsets().tolist())
        for (begin, end), label in zip(places, self.labels().tolist(), strict=True):
            yield values[begin:end], label

    def pieces(self) -> Iterator[tuple[int, Array, Array, Array]]:
        """Rows of some 256 MB, with a number: their values, their offsets, their labels."""
        values, offsets, labels = self.values(), self.offsets(), self.labels()
        number, begin = 0, 0
        while begin < self.count:
            most = offsets[begin] + SHARD_BYTES // values.itemsize
            end = max(begin + 1, int(offsets.searchsorted(most, side="right")) - 1)
            end = min(end, self.count)
            yield (
                number,
                values[offsets[begin] : offsets[end]],
                offsets[begin : end + 1] - offsets[begin],
                labels[begin:end],
            )
            number, begin = number + 1, end

    def batch_of(self, rows: Sequence[Any], labels: Sequence[int]) -> dict[str, Any]:
        """Of rows that came one by one: arrays, tensors or bytes."""
        label = torch.tensor(labels)
        if not self.packed:
            return {"x": [row if isinstance(row, bytes) else bytes(row) for row in rows], "label": label}
        arrays = [
            np.frombuffer(row, self.dtype) if isinstance(row, bytes | memoryview) else np.asarray(row) for row in rows
        ]
        return self.packed_of(np.concatenate(arrays), [len(array) for array in arrays], label)

    def packed_of(self, values: Array, lengths: Sequence[int] | Array, label: torch.Tensor) -> dict[str, Any]:
        begins = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=begins[1:])
        return {"x": torch.from_numpy(values), "cu_seqlens": torch.from_numpy(begins), "label": label}

    @property
    def checked(self) -> int:
        """How many rows of an epoch are checked: some contenders need minutes for all."""
        return min(self.count, 40 * self.batch)

    def is_checked(self, shuffled: bool, workers: int) -> bool:
        return not (shuffled or workers)

    def expected(self, count: int) -> tuple[int, ...]:
        """What `totals` finds in the first rows, so many."""
        offsets = self.offsets()[: count + 1]
        values, labels = self.values()[: offsets[-1]], int(self.labels()[:count].sum())
        if self.packed:
            return count, labels, len(values), int(values.sum(dtype=np.int64)), _weighted(offsets)
        rows = (bytes(values[begin:end]) for begin, end in pairwise(offsets))
        return count, labels, len(values), sum(map(_digest, rows)), 0

    def totals(self, batches: Iterable[dict[str, Any]]) -> tuple[int, ...]:
        """Rows, the sums of labels, lengths and values, and of squared lengths: the same in any order."""
        count = labels = length = sums = squares = 0
        for batch in batches:
            count += len(batch["label"])
            labels += int(batch["label"].sum())
            if self.packed:
                length += len(batch["x"])
                sums += int(batch["x"].sum(dtype=torch.int64))
                squares += _weighted(batch["cu_seqlens"].numpy().astype(np.int64))
            else:
                length += sum(map(len, batch["x"]))
                sums += sum(map(_digest, batch["x"]))
        return count, labels, length, sums, squares

    def make(self) -> None:
        np.save(self.folder / "label.npy", np.random.default_rng(1).integers(0, 1000, self.count))
        values, lengths = _tokens(self) if self.packed else _jpegs(self)
        np.save(self.folder / "values.npy", values)
        np.save(self.folder / "offsets.npy", np.concatenate([[0], np.cumsum(lengths)]))


def sequences(count: int, folder: Path) -> Rows:
    """Of 20 to 2,000 tokens: half of them have less than 200."""
    return Rows("sequences", "int32", count, 256, True, folder)


def jpegs(count: int, folder: Path) -> Rows:
    return Rows("JPEG files", "uint8", count, 64, False, folder)


def _tokens(rows: Rows) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    lengths = np.exp(random.uniform(np.log(20), np.log(2001), rows.count)).astype(np.int64)
    return random.integers(0, 50257, lengths.sum(), np.int32), lengths


def _jpegs(rows: Rows) -> tuple[Array, Array]:
    """Smooth images with some noise, of 256 to 640 pixels a side."""
    random = np.random.default_rng(0)
    files = []
    for _ in range(min(_IMAGES, rows.count)):
        width, height = (int(side) for side in random.integers(256, 641, 2))
        small = Image.fromarray(random.integers(0, 256, (12, 12, 3), np.uint8))
        image = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
        image = np.clip(image + random.integers(-12, 13, image.shape, np.int16), 0, 255).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(image).save(out, "JPEG", quality=int(random.integers(70, 96)))
        files.append(np.frombuffer(out.getvalue(), np.uint8))
    chosen = [files[number] for number in random.integers(0, len(files), rows.count)]
    return np.concatenate(chosen), np.array([len(file) for file in chosen])


def _weighted(offsets: Array) -> int:
    return int((np.diff(offsets) ** 2).sum())


def _digest(content: bytes) -> int:
    return zlib.crc32(content)
