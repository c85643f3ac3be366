"""The index against the headers: each entry is that of one tensor, and each tensor has one entry."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter

from safetensors_spark._errors import InvalidIndexError
from safetensors_spark._files.index import IndexEntry, TensorIndex

# Keys are sorted as UTF-8 bytes. Those of batches repeat in each shard, and are then sorted by file.
SortKey = tuple[bytes, str]


class Tensors:
    """The tensors of all shards, as a hash of the `IndexEntry` of each: eight bytes, as there may be many millions."""

    def __init__(self, hashes: Iterable[int]) -> None:
        self._hashes = array("q", sorted(hashes))
        self._taken = bytearray(len(self._hashes))

    def __len__(self) -> int:
        return len(self._hashes)

    def take(self, entry: IndexEntry) -> bool:
        """Whether there is such a tensor that was not taken before."""
        number = hash(entry)
        at = bisect_left(self._hashes, number)
        while at < len(self) and self._hashes[at] == number:
            if not self._taken[at]:
                self._taken[at] = 1
                return True
            at += 1
        return False

    @property
    def left(self) -> int:
        """How many were not taken."""
        return self._taken.count(0)

    @property
    def first_left(self) -> int:
        """The hash of one that was not taken."""
        return self._hashes[self._taken.index(0)]


class PartCheck:
    """A part of the index, and what is wrong with it: of wrong entries the first one and their number."""

    def __init__(self, name: str, index: TensorIndex) -> None:
        self.name = name
        self.faults: list[str] = []
        self._index = index
        self._wrong = 0
        self._last: IndexEntry | None = None

    def __len__(self) -> int:
        return len(self._index)

    def refuse(self, entry: IndexEntry, what: str) -> None:
        # An entry out of order may be another tensor's too, and counts once.
        if entry is self._last:
            return
        self._last = entry
        self._wrong += 1
        if self._wrong == 1:
            self.faults.append(f"its entry for `{entry.key:.200}` {what}")

    def entries(self) -> Iterator[tuple[SortKey, PartCheck, IndexEntry]]:
        before: SortKey | None = None
        try:
            for entry in self._index:
                order = entry.key.encode(), entry.file
                if before is not None and order <= before:
                    self.refuse(entry, "does not come after the one before it")
                before = order
                yield order, self, entry
        except InvalidIndexError as error:
            self.faults.append(str(error))
        if self._wrong > 1:
            self.faults.append(f"{self._wrong} entries are wrong")


def check(parts: list[PartCheck], tensors: Tensors, is_batch: bool) -> None:
    """Finds the faults of the parts, and takes the tensors that have a correct entry."""
    before: SortKey | None = None
    for order, part, entry in merge(*(part.entries() for part in parts), key=itemgetter(0)):
        known = tensors.take(entry)
        if before is not None and (order == before if is_batch else order[0] == before[0]):
            part.refuse(entry, f"in {entry.file} is the second one for that key")
        elif not known:
            part.refuse(entry, f"is not what the header of {entry.file} says")
        before = order
