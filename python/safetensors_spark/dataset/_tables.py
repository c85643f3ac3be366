"""Where the tensors of a store lie: by its index, a row group at a time, or by the headers of all files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from safetensors_spark._contents import Contents, File
from safetensors_spark._errors import DamagedShardError
from safetensors_spark._index import INDEX
from safetensors_spark.dataset._block import Block, Kind, Place, Places, block_of, find_in
from safetensors_spark.dataset._index_blocks import IndexBlocks
from safetensors_spark.dataset._maps import check_length, missing
from safetensors_spark.dataset._recent import Recent

# So many keys of an index are kept in memory.
_KEYS = 2_000_000

_THREADS = 8


class IndexTable:
    """The tensors that the index tells of. Only what a look-up needs of it is read, and is kept."""

    def __init__(self, blocks: IndexBlocks) -> None:
        self._blocks = blocks
        self._bounds = blocks.bounds
        self._firsts: dict[int, str] = {}
        self._kept: Recent[Block] = Recent(_KEYS, len)

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[str]:
        for at in range(len(self._bounds)):
            yield from self._block(at)

    def find(self, key: object) -> Place | None:
        if not isinstance(key, str) or (at := bisect_right(self._bounds, key) - 1) < 0:
            return None
        found = self._block(at).find(key)
        if found is None and key < self._first(at) and (at := self._before(at, key)) >= 0:
            found = self._block(at).find(key)
        return found

    def find_many(self, keys: Sequence[str]) -> Places | None:
        """Of one key or more; None where one of them is not found at once, though it need not be absent.

        What is needed of the index is read in as few requests as may be.
        """
        near = np.array([bisect_right(self._bounds, key) for key in keys]) - 1
        numbers, which = np.unique(near, return_inverse=True)
        needed = [number for number in numbers.tolist() if number >= 0]
        blocks = {number: block for number in needed if (block := self._kept.get(number)) is not None}
        absent = [number for number in needed if number not in blocks]
        for number, block in zip(absent, self._blocks.read(absent), strict=True):
            blocks[number] = self._keep(number, block)
        return find_in([blocks[number] for number in needed], which, keys) if len(needed) == len(numbers) else None

    def _before(self, at: int, key: str) -> int:
        """The last block before this one that begins no later than the key; -1 where all begin behind it.

        Parquet need not tell the first key of a row group, only one that is not greater.
        """
        low, high = -1, at - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._first(middle) <= key else (low, middle - 1)
        return low

    def _first(self, at: int) -> str:
        found = self._firsts.get(at)
        return next(iter(self._block(at))) if found is None else found

    def _block(self, at: int) -> Block:
        return self._kept.get(at) or self._keep(at, *self._blocks.read([at]))

    def _keep(self, at: int, block: Block) -> Block:
        self._firsts[at] = next(iter(block))
        return self._kept.keep(at, block)


class HeaderTable:
    """The tensors that headers tell of, which are read all."""

    def __init__(self, contents: Contents) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(lambda numbered: _tensors(contents, *numbered), enumerate(contents.files)))
        self._block = block_of(tensor for tensors in found for tensor in tensors)

    def __len__(self) -> int:
        return len(self._block)

    def __iter__(self) -> Iterator[str]:
        return iter(self._block)

    def find(self, key: object) -> Place | None:
        return self._block.find(key) if isinstance(key, str) else None

    def find_many(self, keys: Sequence[str]) -> Places | None:
        return find_in([self._block], np.zeros(len(keys), np.int64), keys)


def _tensors(contents: Contents, number: int, file: File) -> list[tuple[str, Place]]:
    """The tensors of a file; of a checkpoint those that its index says are in it."""
    if file.bytes is None:
        raise missing(contents, file)
    check_length(contents, file, file.bytes)
    try:
        header = contents.header(file)
    except FileNotFoundError:
        raise missing(contents, file) from None
    weights = contents.weights
    if weights is not None:
        lost = [name for name, place in weights.items() if place == file.name and name not in header.by_name]
        if lost:
            raise DamagedShardError(
                f"{contents.folder.location}/{file.name} has no tensor `{lost[0]}`, which the checkpoint's index says "
                "is in it."
            )
    return [
        (tensor.name, (number, header.data_start + tensor.begin, Kind(tensor.dtype, tensor.shape)))
        for tensor in header.tensors
        if weights is None or weights.get(tensor.name) == file.name
    ]


Table: TypeAlias = IndexTable | HeaderTable


def open_table(contents: Contents) -> Table:
    """By the index, where there is one of the manifest's commit."""
    if contents.manifest and INDEX in contents.names:
        blocks = IndexBlocks(contents)
        if blocks.commit_id == contents.manifest.commit_id:
            return IndexTable(blocks)
    return HeaderTable(contents)
