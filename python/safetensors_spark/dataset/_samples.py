"""Where the samples of a dataset lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from safetensors_spark._errors import DamagedShardError
from safetensors_spark._files.contents import Contents, File
from safetensors_spark.dataset._cache import Cache, fetcher
from safetensors_spark.dataset._shards import Array, Part, Shards, T, View


class Samples:
    """The shards that have a dataset's samples, and the columns that are read of them.

    Attributes:
        contents: what lies in the folder.
        columns: the names of the columns.
        parts: the shards that have samples, in their order.
    """

    def __init__(self, contents: Contents, columns: Sequence[str], cache: Cache) -> None:
        self.contents = contents
        self.columns = tuple(columns)
        self.parts = tuple(_parts(contents))
        self._begins = np.array([part.begin for part in self.parts], np.int64)
        self._files = fetcher(contents.folder, cache)

    def __len__(self) -> int:
        return self.parts[-1].end if self.parts else 0

    def numbers(self, indices: Sequence[int] | Array) -> Array:
        """Numbers of samples as an array. Raises `IndexError` for what no sample has."""
        numbers = np.asarray(indices, np.int64)
        if numbers.ndim != 1:
            raise IndexError(f"the numbers of samples are an array of {numbers.ndim} dimensions, expected one")
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(self)):
            raise IndexError(
                f"samples are numbered 0 to {len(self) - 1}, and {numbers.min()} to {numbers.max()} are asked for"
            )
        return numbers

    def which(self, number: int) -> int:
        """The place in `parts` of the shard that has the sample."""
        return int(self._begins.searchsorted(number, side="right")) - 1

    def locate(self, numbers: Array) -> tuple[Array, Array]:
        """Of each sample the shard's place in `parts`, and its number in the shard."""
        which = self._begins.searchsorted(numbers, side="right") - 1
        return which, numbers - self._begins[which]

    def shards(self, view: View[T]) -> Shards[T]:
        """The shards, with columns as the view makes them."""
        return Shards(self.contents, self.columns, self._files, view)


def _parts(contents: Contents) -> Iterator[Part]:
    counts = [file.shard.samples if file.shard else _samples(contents, file) for file in contents.files]
    for file, count, end in zip(contents.files, counts, accumulate(counts), strict=True):
        if count:
            yield Part(file, end - count, end)


def _samples(contents: Contents, file: File) -> int:
    """The samples of a file that no manifest counts."""
    counts = {tensor.name: tensor.shape[0] if tensor.shape else None for tensor in contents.header(file).tensors}
    if len(set(counts.values())) != 1 or None in counts.values():
        raise DamagedShardError(
            f"{contents.folder.location}/{file.name}: its tensors have {counts} samples, and must agree in their first "
            "dimension to be read by samples."
        )
    return next(count for count in counts.values() if count is not None)
