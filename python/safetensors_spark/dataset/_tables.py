"""Where the tensors of a store lie: by its index, a row group at a time, or by the headers of all files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import merge
from itertools import accumulate
from typing import TypeAlias, TypeVar

import numpy as np

from safetensors_spark._errors import DamagedShardError, DatasetChangedError, InvalidIndexError, SafetensorsSparkError
from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import IndexPart, Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark._files.tensors import Tensors
from safetensors_spark.dataset._block import Block, Place, Places, TensorSpec, find_in, joined
from safetensors_spark.dataset._index_blocks import IndexBlocks
from safetensors_spark.dataset._maps import check_length, check_version, missing
from safetensors_spark.dataset._recent import Recent

# So many keys of an index are kept in memory.
_KEYS = 2_000_000

_THREADS = 8

_T = TypeVar("_T")


class IndexTable:
    """The tensors that a part of the index tells of. Only what a look-up needs of it is read, and is kept."""

    def __init__(self, blocks: IndexBlocks, kept: Recent[Block]) -> None:
        self._blocks = blocks
        self._kept = kept
        self._bounds = blocks.bounds
        self._firsts: dict[int, str] = {}

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

    def find_many(self, keys: Sequence[str]) -> tuple[Places, Array]:
        """Where the keys lie that are found at once, and which they are. The others need not be absent.

        What is needed of the index is read in as few requests as may be.
        """
        near = np.array([bisect_right(self._bounds, key) for key in keys]) - 1
        within = near >= 0
        numbers, which = np.unique(near[within], return_inverse=True)
        needed = numbers.tolist()
        blocks = {number: block for number in needed if (block := self._kept.get((self, number))) is not None}
        absent = [number for number in needed if number not in blocks]
        for number, block in zip(absent, self._blocks.read(absent), strict=True):
            blocks[number] = self._keep(number, block)
        some = [key for key, there in zip(keys, within.tolist(), strict=True) if there]
        places, there = find_in([blocks[number] for number in needed], which, some)
        within[within] = there
        return places, within

    def repeats(self, key: str, other: IndexTable) -> SafetensorsSparkError:
        """The error for a key that another part has too."""
        return self._blocks.error(f"its entry for `{key:.200}` is in {other._blocks.name} too")

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
        return self._kept.get((self, at)) or self._keep(at, *self._blocks.read([at]))

    def _keep(self, at: int, block: Block) -> Block:
        self._firsts[at] = next(iter(block))
        return self._kept.keep((self, at), block)


class HeaderTable:
    """The tensors that headers tell of, which are read all."""

    def __init__(self, contents: Contents) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(lambda shard: _tensors(contents, shard), contents.shards))
        self._block = _joined(found)
        if contents.kind == "folder" and len(self._block) < sum(len(tensors) for tensors, _ in found):
            raise _repeated(contents, [tensors for tensors, _ in found])

    def __len__(self) -> int:
        return len(self._block)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sorted)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._block)

    def find(self, key: object) -> Place | None:
        return self._block.find(key) if isinstance(key, str) else None

    def find_many(self, keys: Sequence[str]) -> tuple[Places, Array]:
        return find_in([self._block], np.zeros(len(keys), np.int64), keys)


def _joined(shards: Sequence[tuple[Tensors, int]]) -> Block:
    """The tensors of these shards, whose byte buffers begin at these bytes."""
    names = [name for tensors, _ in shards for name in tensors.names]
    offsets = accumulate((len(tensors.kinds) for tensors, _ in shards), initial=0)
    none = np.empty(0, np.int64)
    starts = np.concatenate([none, *(tensors.begins + data_start for tensors, data_start in shards)])
    which = np.concatenate([none, *(one.kind_of + offset for (one, _), offset in zip(shards, offsets, strict=False))])
    specs = [(number, TensorSpec(*kind)) for number, (tensors, _) in enumerate(shards) for kind in tensors.kinds]
    return Block(names, starts, which, specs)


def _repeated(contents: Contents, files: Sequence[Tensors]) -> SafetensorsSparkError:
    """The error for a key in several files, where nothing says which one counts."""
    owners: dict[str, str] = {}
    for shard, tensors in zip(contents.shards, files, strict=True):
        for name in tensors.names:
            if (owner := owners.setdefault(name, shard.file)) != shard.file:
                return SafetensorsSparkError(
                    f"of {contents.location}, {owner} and {shard.file} both have a tensor `{name:.200}`, and a store "
                    "has each key once: open batches of samples with `open_dataset`, or one of the files by its path."
                )
    raise AssertionError("no name is twice")


def _tensors(contents: Contents, shard: Shard) -> tuple[Tensors, int]:
    """The tensors of a shard, and where its byte buffer begins; of a checkpoint those that its index says are in it."""
    length = contents.length(shard)
    if length is None:
        raise missing(contents, shard)
    check_length(contents, shard, length)
    try:
        header = contents.header(shard)
        # Of local ones the file that is mapped is checked.
        if shard.file in contents.versions and isinstance(contents.folder, RemoteFolder):
            check_version(contents, shard, contents.folder.version(shard.file))
    except FileNotFoundError:
        raise missing(contents, shard) from None
    weights = contents.weights
    if weights is not None:
        lost = [name for name, place in weights.items() if place == shard.file and name not in header.by_name]
        if lost:
            raise DamagedShardError(
                f"{contents.folder.location}/{shard.file} has no tensor `{lost[0]}`, which the checkpoint's index says "
                "is in it."
            )
        named = [number for number, name in enumerate(header.tensors.names) if weights.get(name) == shard.file]
        return header.tensors.take(np.array(named, np.int64)), header.data_start
    return header.tensors, header.data_start


class PartsTable:
    """The tensors that the parts of an index tell of. No key is in two of them."""

    def __init__(self, parts: Sequence[IndexTable], is_local: bool) -> None:
        self._parts, self._is_local = parts, is_local

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[str]:
        return merge(*self._parts)

    def find(self, key: object) -> Place | None:
        found = (part.find(key) for part in self._parts) if self._is_local else self._ask(lambda part: part.find(key))
        return next((place for place in found if place is not None), None)

    def find_many(self, keys: Sequence[str]) -> tuple[Places, Array]:
        found = self._one_by_one(keys) if self._is_local else self._side_by_side(keys)
        there = np.zeros(len(keys), bool)
        for _, numbers in found:
            there[numbers] = True
        return joined(found), there

    def _one_by_one(self, keys: Sequence[str]) -> list[tuple[Places, Array]]:
        """Asks each part for the keys that those before it do not have: mostly the first has them."""
        names, left = np.array(keys, object), np.arange(len(keys))
        found = []
        for part in self._parts:
            places, there = part.find_many(names[left].tolist())
            found.append((places, left[there]))
            left = left[~there]
            if not len(left):
                break
        return found

    def _side_by_side(self, keys: Sequence[str]) -> list[tuple[Places, Array]]:
        """Asks all parts for all keys at once, since each may take a request."""
        found = [(places, np.flatnonzero(there)) for places, there in self._ask(lambda part: part.find_many(keys))]
        self._check_unique([numbers for _, numbers in found], keys)
        return found

    def _check_unique(self, found: Sequence[Array], keys: Sequence[str]) -> None:
        """Raises `InvalidIndexError` for a key that two parts have found."""
        owner = np.full(len(keys), -1)
        for at, numbers in enumerate(found):
            if len(repeated := numbers[owner[numbers] >= 0]):
                key = int(repeated[0])
                raise self._parts[at].repeats(keys[key], self._parts[owner[key]])
            owner[numbers] = at

    def _ask(self, look: Callable[[IndexTable], _T]) -> list[_T]:
        with ThreadPoolExecutor(len(self._parts)) as threads:
            return list(threads.map(look, self._parts))


Table: TypeAlias = IndexTable | PartsTable | HeaderTable


def open_table(contents: Contents) -> Table:
    """By the index, if it is that of the manifest's commit."""
    parts = contents.manifest.index_parts if contents.manifest else ()
    if not parts or not all(part.file in contents.names for part in parts):
        return HeaderTable(contents)
    try:
        with ThreadPoolExecutor(len(parts)) as threads:
            blocks = list(threads.map(lambda part: IndexBlocks(contents, part.file), parts))
    except (InvalidIndexError, DatasetChangedError):
        # A later commit's part cannot be read by the listed length.
        if any(_is_replaced(contents, part) for part in parts):
            return HeaderTable(contents)
        raise
    if any(one.commit_id != part.commit_id for one, part in zip(blocks, parts, strict=True)):
        return HeaderTable(contents)
    kept: Recent[Block] = Recent(_KEYS, len)
    tables = [IndexTable(one, kept) for one in blocks]
    return tables[0] if len(tables) == 1 else PartsTable(tables, isinstance(contents.folder, LocalFolder))


def _is_replaced(contents: Contents, part: IndexPart) -> bool:
    """Whether a commit has replaced or deleted the part since the folder was listed."""
    try:
        return contents.folder.size(part.file) != contents.names[part.file]
    except FileNotFoundError:
        return True
