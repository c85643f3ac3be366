"""The samples of several folders as those of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import Shard
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import OpenShard, OpenShards, T, View


@dataclass(frozen=True)
class PartShard(Shard):
    """A shard of one of several folders; `part` is the folder's number."""

    part: int = 0


class Joined(Samples):
    """The samples of one folder after those of the other. All have the same columns.

    Attributes:
        parts: the samples of each folder.
        firsts, first_shards: for each of them the number of its first sample here, and of its first shard.
    """

    def __init__(self, parts: Sequence[Samples], location: str) -> None:
        self.parts = tuple(parts)
        self.contents = parts[0].contents
        shards = [shard for part, one in enumerate(parts) for shard in of_part(part, one.shards)]
        self._place(location, parts[0]._read, tuple(shards))
        self.firsts = list(accumulate(map(len, parts), initial=0))[:-1]
        self.first_shards = list(accumulate((len(part.shards) for part in parts), initial=0))[:-1]

    def _contents(self, shard: Shard) -> Contents:
        return self.parts[_part(shard)].contents

    def open(self, view: View[T]) -> OpenShards[T]:
        return _JoinedShards([part.open(view) for part in self.parts])


class _JoinedShards(OpenShards[T]):
    def __init__(self, parts: Sequence[OpenShards[T]]) -> None:
        self._parts = parts

    def open(self, shard: Shard) -> OpenShard[T]:
        return self._parts[_part(shard)].open(shard)

    def prefetch(self, shards: Sequence[Shard]) -> None:
        for part, some in self._by_part(shards):
            part.prefetch(some)

    def release(self, needed: Sequence[Shard]) -> None:
        for part, some in self._by_part(needed):
            part.release(some)

    def _by_part(self, shards: Sequence[Shard]) -> Iterator[tuple[OpenShards[T], Sequence[Shard]]]:
        for number, part in enumerate(self._parts):
            yield part, [shard for shard in shards if _part(shard) == number]


def of_part(part: int, shards: Sequence[Shard]) -> list[PartShard]:
    """Shards of the folder of this number."""
    return [PartShard(**vars(shard), part=part) for shard in shards]


def _part(shard: Shard) -> int:
    return shard.part if isinstance(shard, PartShard) else 0
