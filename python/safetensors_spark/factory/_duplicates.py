"""Which rows of a whole dataset are duplicates, by keys of rows alone: the rows themselves are exchanged nowhere.

Three passes: keys of each shard, in files; rows with a key in common, by groups of keys; and what hangs together. Keys
of a shard are computed once, also where later runs have more shards.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._fields import PREFIX
from safetensors_spark.factory._keys import naming
from safetensors_spark.factory._operator import Deduplicator, Filter
from safetensors_spark.factory._placement import Actors, actors_of
from safetensors_spark.factory._source import InputShard, ShardSource
from safetensors_spark.factory._stage_task import input_id
from safetensors_spark.factory._windows import windows
from safetensors_spark.pipeline import Backend, Dataset
from safetensors_spark.pipeline._failures import with_note
from safetensors_spark.pipeline._operations import ShardInfo
from safetensors_spark.pipeline._whole_file import whole_file

KEYS = "keys"
MARK = f"{PREFIX}duplicate_of"

# Keys are divided by their first bits. A group of keys is in memory at a time.
_GROUPS, _GROUP_SHARDS = 256, 16
# A row's place: the number of its shard, and that of the row in it.
_ROW_BITS = 40
_EDGES_AT_ONCE = 65_536

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Marked:
    """A shard, some of whose rows are duplicates.

    Attributes:
        rows: their numbers, in order.
        kept: for each the place of the row that is kept for it.
    """

    shard: InputShard
    rows: Places
    kept: Places

    @property
    def version(self) -> str:
        digest = blake2b(self.rows.tobytes() + self.kept.tobytes(), digest_size=8).hexdigest()
        return f"{self.shard.version} {digest}"

    def tables(self) -> Iterator[pa.Table]:
        begin = 0
        for table in self.shard.tables():
            first, last = np.searchsorted(self.rows, [begin, begin + table.num_rows])
            marks: list[str | None] = [None] * table.num_rows
            for row, place in zip(self.rows[first:last].tolist(), self.kept[first:last].tolist(), strict=True):
                marks[row - begin] = f"duplicate of row {place & (1 << _ROW_BITS) - 1} of shard {place >> _ROW_BITS}"
            yield table.append_column(MARK, pa.array(marks, pa.string()))
            begin += table.num_rows

    def __fingerprint__(self) -> str:
        return self.version


class Marks(Filter):
    """Drops the rows that are marked."""

    type = "marks"

    @property
    def reads(self) -> tuple[str, ...]:
        return (MARK,)

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return batch.column(MARK)


def marked(
    operator: Deduplicator, shards: Sequence[InputShard], folder: str, config: str, window: int, backend: Backend
) -> list[InputShard]:
    """The shards, whose duplicates are marked: of rows that are duplicates of each other the first one is kept.

    Args:
        folder: of the stage, which keeps the keys.
        config: what keys depend on beside the rows.
        window: bytes of rows in memory.
    """
    if not shards:
        return []
    names = [input_id(config, shard) for shard in shards]
    with actors_of([operator], backend) as actors:
        keys = KeysTask(operator, folder, tuple(names), window, actors)
        rows: Dataset[Any] = Dataset(ShardSource(list(enumerate(shards)))).map_shard(keys)
        pairs = rows.group_by(_group_of, PairsOf(operator), _shard_of, _GROUP_SHARDS)
        found = pairs.reduce(_joined, Together(operator, folder, tuple(names)))
        (duplicates,) = backend.execute(found)
    _delete_others(folder, names)
    return [Marked(shard, *_of_shard(duplicates, number)) for number, shard in enumerate(shards)]


def _of_shard(duplicates: Places, number: int) -> tuple[Places, Places]:
    first, last = np.searchsorted(duplicates[:, 0], [number << _ROW_BITS, (number + 1) << _ROW_BITS])
    some = duplicates[first:last]
    return some[:, 0] & (1 << _ROW_BITS) - 1, some[:, 1]


def _delete_others(folder: str, names: Sequence[str]) -> None:
    target, kept = open_target(folder), {*names}
    for name in target.names(KEYS):
        if name.partition(".")[0] not in kept:
            target.delete(f"{KEYS}/{name}")


@dataclass(frozen=True)
class KeysTask:
    """A function of `map_shard`: the keys of each shard, in a file, and in groups."""

    operator: Deduplicator
    folder: str
    names: tuple[str, ...]
    window: int
    actors: Actors

    def __call__(
        self, shards: Iterator[tuple[int, InputShard]], _: ShardInfo
    ) -> Iterator[tuple[int, int, Any, Places]]:
        target = open_target(self.folder)
        for number, shard in shards:
            name = f"{KEYS}/{self.names[number]}"
            if target.status(f"{name}.keys") is None:
                self._write(name, number, shard)
            keys, rows = _read(target, f"{name}.keys"), _read(target, f"{name}.rows")
            groups = (keys[:, 0] >> np.uint64(56)).astype(np.int64)
            order = np.argsort(groups, kind="stable")
            ends = np.searchsorted(groups[order], np.arange(_GROUPS + 1))
            for group in range(_GROUPS):
                some = order[ends[group] : ends[group + 1]]
                if len(some):
                    yield group, number, keys[some], rows[some] | number << _ROW_BITS

    def _write(self, name: str, number: int, shard: InputShard) -> None:
        (operator,) = self.actors.ready([self.operator])
        assert isinstance(operator, Deduplicator)
        keys: list[Any] = []
        rows: list[Places] = []
        signatures: list[Any] = []
        begin = 0
        for table in windows(shard.tables(), self.window):
            for batch in table.select(list(self.operator.reads)).combine_chunks().to_batches():
                try:
                    found = self.actors.keys(operator, batch)
                except Exception as error:
                    last, stage = begin + batch.num_rows - 1, self.folder.rpartition("/")[2]
                    with_note(error, f"In rows {begin} to {last} of shard {number} of stage `{stage}`")
                    raise
                keys.append(found.keys)
                rows.append(found.rows + begin)
                if found.signatures is not None:
                    signatures.append(found.signatures)
                begin += batch.num_rows
        target = open_target(self.folder)
        empty = np.empty((0, 2), np.uint64)
        parts = [("rows", np.concatenate([np.empty(0, np.int64), *rows]))]
        parts += [("signatures", np.concatenate(signatures))] if signatures else []
        # Last: that it is there means that all are.
        for kind, array in [*parts, ("keys", np.concatenate([empty, *keys]))]:
            with whole_file(target, f"{name}.{kind}", durable=True) as file:
                np.save(file, array)


def _read(target: Any, name: str) -> Any:
    content = target.read(name)
    return None if content is None else np.load(io.BytesIO(content), allow_pickle=False)


def _group_of(row: tuple[int, int, Any, Places]) -> int:
    return row[0]


def _shard_of(row: tuple[int, int, Any, Places]) -> int:
    return row[1]


@dataclass(frozen=True)
class PairsOf:
    """The pairs of rows that have a key of a group in common: of each pair the later row first."""

    operator: Deduplicator

    def __call__(self, _: int, rows: Iterator[tuple[int, int, Any, Places]]) -> Iterator[Places]:
        found = list(rows)
        keys, places = (np.concatenate([row[part] for row in found]) for part in (2, 3))
        with naming(self.operator):
            pairs = self.operator.pairs(keys, places)
        if len(pairs):
            yield np.unique(pairs, axis=0)


def _joined(pairs: Iterable[Places]) -> Places:
    return np.unique(np.concatenate([np.empty((0, 2), np.int64), *pairs]), axis=0)


@dataclass(frozen=True)
class Together:
    """The duplicates: the place of each, and of the first row that it hangs together with, in order."""

    operator: Deduplicator
    folder: str
    names: tuple[str, ...]

    def __call__(self, parts: Iterable[Places]) -> Places:
        pairs = self._similar(_joined(parts))
        nodes, ends = np.unique(pairs, return_inverse=True)
        later, earlier = ends.reshape(-1, 2).T
        # Each gets the number of the first node that it hangs together with.
        first = np.arange(len(nodes))
        while True:
            least = np.minimum(first[later], first[earlier])
            before = first.copy()
            np.minimum.at(first, later, least)
            np.minimum.at(first, earlier, least)
            first = first[first]
            if (first == before).all():
                break
        is_duplicate = first < np.arange(len(nodes))
        return np.stack([nodes[is_duplicate], nodes[first[is_duplicate]]], axis=1)

    def _similar(self, pairs: Places) -> Places:
        """Those of the pairs whose signatures say so."""
        signatures = [_read(open_target(self.folder), f"{KEYS}/{name}.signatures") for name in self.names]
        there = [one for one in signatures if one is not None and len(one)]
        if not there:
            return pairs
        begins = np.cumsum([0, *(0 if one is None else len(one) for one in signatures)])
        every = np.concatenate(there)
        rows = (begins[pairs >> _ROW_BITS]) + (pairs & (1 << _ROW_BITS) - 1)
        with naming(self.operator):
            kept = [
                self.operator.are_similar(every[some[:, 0]], every[some[:, 1]])
                for some in (rows[begin : begin + _EDGES_AT_ONCE] for begin in range(0, len(rows), _EDGES_AT_ONCE))
            ]
        similar: Places = pairs[np.concatenate([np.empty(0, bool), *kept])]
        return similar
