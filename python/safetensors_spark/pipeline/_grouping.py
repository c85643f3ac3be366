"""Rows of equal keys brought together: divided and sorted in one stage, merged and reduced in the next.

Memory holds a bounded part of a shard at a time, which is sorted and written as a run. The next stage merges the runs
of its partition from all shards, reading a frame of each at a time; more of them than memory is for are merged into
fewer, on disk, first. Rows of equal keys stay in the order of shards and of rows within them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark.pipeline._frames import weight
from safetensors_spark.pipeline._keys import order_of, partition_of
from safetensors_spark.pipeline._operations import GroupBy
from safetensors_spark.pipeline._scratch import scratch
from safetensors_spark.pipeline._shard_file import Footer, FrameWriter, ShardFile

# The overhead of a row that waits in memory, beside itself: its key and its place in a list.
_ROW_BYTES = 200
_LEAST_FRAME = 16 << 10

_Run = Callable[[], Iterator[Any]]


def frame_bytes(memory: int, shards: int) -> int:
    """How large frames are, of which a merge holds one for each of so many shards."""
    return max(_LEAST_FRAME, min(1 << 20, memory // (4 * max(1, shards))))


def scatter(
    rows: Iterable[Any],
    group: GroupBy,
    partitions: int,
    memory: int,
    writer: FrameWriter,
    bad: Callable[[GroupBy, Any, Exception], None] | None = None,
) -> int:
    """Write the rows by partitions, sorted, in runs that fit the memory. Returns how many there are.

    Args:
        bad: gets rows that have no key; None if the first of them ends the shard.
    """
    buffer: list[tuple[int, tuple[Any, ...], Any, Any]] = []
    used = run = count = 0
    for row in rows:
        try:
            order = order_of(group.key(row))
            sort = group.sort_by(row) if group.sort_by is not None else None
        except Exception as error:
            if bad is None:
                raise
            bad(group, row, error)
            continue
        buffer.append((partition_of(order, partitions), order, sort, row))
        used += weight(row) + _ROW_BYTES
        if used > memory:
            count += _write_run(buffer, group, writer, run)
            buffer.clear()
            used, run = 0, run + 1
    return count + _write_run(buffer, group, writer, run)


def _write_run(buffer: list[tuple[Any, ...]], group: GroupBy, writer: FrameWriter, run: int) -> int:
    buffer.sort(key=itemgetter(slice(0, 2)) if group.sort_by is None else itemgetter(slice(0, 3)))
    count = 0
    for partition, of_partition in groupby(buffer, key=itemgetter(0)):
        rows = ((order, row) for _, order, _, row in of_partition)
        count += writer.write(_combined(rows, group), partition, run)
    return count


def _combined(rows: Iterable[tuple[Any, Any]], group: GroupBy) -> Iterator[Any]:
    if group.combiner is None:
        return (row for _, row in rows)
    return _of_combiner(rows, group)


def _of_combiner(rows: Iterable[tuple[Any, Any]], group: GroupBy) -> Iterator[Any]:
    assert group.combiner is not None
    for _, of_key in groupby(rows, key=itemgetter(0)):
        found: Iterable[Any] = _called(group.combiner, group, of_key)
        if group.sort_by is not None:
            # What a combiner makes need not be sorted.
            found = sorted(found, key=group.sort_by)
        yield from found


def _called(function: Callable[[Any, Iterator[Any]], Any], group: GroupBy, of_key: Iterator[tuple[Any, Any]]) -> Any:
    rows = map(itemgetter(1), of_key)
    first = next(rows)
    return function(group.key(first), chain([first], rows))


def gather(shards: Sequence[ShardFile], partition: int, group: GroupBy, memory: int) -> Iterator[Any]:
    """What the reducer makes of the keys of a partition, in their order."""
    with scratch() as folder:
        merged = merge(_runs(shards, partition), group, memory, Path(folder))
        for _, of_key in groupby(merged, key=itemgetter(0)):
            found = _called(group.reducer, group, of_key)
            if isinstance(found, Iterator):
                yield from found
            else:
                yield found


def _runs(shards: Sequence[ShardFile], partition: int) -> list[tuple[int, _Run]]:
    """The runs of a partition, in order, each with the bytes of its longest frame."""
    found: list[tuple[int, _Run]] = []
    for shard in shards:
        frames = [frame for frame in shard.frames if frame.partition == partition]
        for _, of_run in groupby(frames, key=lambda frame: frame.run):
            run = list(of_run)
            found.append((max(frame.length for frame in run), lambda shard=shard, run=run: shard.rows(run)))  # type: ignore[misc]
    return found


def merge(runs: list[tuple[int, _Run]], group: GroupBy, memory: int, folder: Path) -> Iterator[tuple[Any, Any]]:
    """Orders and rows of all runs, sorted. Earlier runs come first where they are equal."""
    level = 0
    # Rows take several times the memory that their bytes take.
    while len(runs) > 2 and sum(size for size, _ in runs) * 4 > memory:
        runs = _fewer(runs, group, memory, folder / str(level))
        level += 1
    yield from _merged([run for _, run in runs], group)


def _fewer(runs: list[tuple[int, _Run]], group: GroupBy, memory: int, folder: Path) -> list[tuple[int, _Run]]:
    """Neighbours merged to longer runs, in files, as many at a time as memory is for."""
    folder.mkdir()
    target = LocalTarget(LocalFolder(folder))
    longer: list[tuple[int, _Run]] = []
    while runs:
        many, size = 0, 0
        while many < len(runs) and (many < 2 or (size + runs[many][0]) * 4 <= memory):
            size += runs[many][0]
            many += 1
        name = str(len(longer))
        with (folder / name).open("xb") as file:
            writer = FrameWriter(file, _LEAST_FRAME)
            writer.write(row for _, row in _merged([run for _, run in runs[:many]], group))
            writer.finish(Footer())
        shard = ShardFile(target, name)
        longer.append((max((frame.length for frame in shard.frames), default=0), shard.rows))
        runs = runs[many:]
    return longer


def _merged(runs: Iterable[_Run], group: GroupBy) -> Iterator[tuple[Any, Any]]:
    streams = [_ordered(run(), group) for run in runs]
    by = itemgetter(0) if group.sort_by is None else itemgetter(0, 1)
    for order, _, row in heapq.merge(*streams, key=by):
        yield order, row


def _ordered(rows: Iterator[Any], group: GroupBy) -> Iterator[tuple[Any, Any, Any]]:
    key, sort_by = group.key, group.sort_by
    for row in rows:
        yield order_of(key(row)), sort_by(row) if sort_by is not None else None, row
