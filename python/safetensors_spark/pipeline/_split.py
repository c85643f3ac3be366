"""Files divided among shards where they are read, instead of their rows after it.

Rows keep their order, and where a shard begins depends on the files alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import accumulate, pairwise

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._formats.reading import format_of, is_compressed
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._source import FilePart, SourceShard

# Files whose row groups are requested at the same time.
_THREADS = 16


def split_files(shards: Sequence[SourceShard], load: Load, count: int) -> list[SourceShard] | None:
    """So many shards of the same files: by row groups of Parquet, splits of Vortex, or bytes of plain lines.

    None if the files cannot be divided into as many parts of about the same size.

    Args:
        shards: with versions and sizes, one for each file.
    """
    paths = [shard.rows[0] for shard in shards if len(shard.rows) == 1 and isinstance(shard.rows[0], str)]
    if not paths or len(paths) < len(shards):
        return None
    kinds = {format_of(path) if load.format == "file" else load.format for path in paths}
    # Of a Vortex file that is elsewhere, each part would be a copy of all of it.
    if kinds == {"parquet"} or (kinds == {"vortex"} and not any("://" in path for path in paths)):
        # Each format needs a library of its own.
        module = import_module(f"safetensors_spark.pipeline._formats.{kinds.pop()}")
        try:
            with ThreadPoolExecutor(_THREADS) as threads:
                sizes: list[list[int]] = list(threads.map(module.row_groups, paths))
        except PipelineError:
            # The task that reads a damaged file says so, and may put it aside.
            return None
        # One shard gets the rows of a whole group.
        if max((size for groups in sizes for size in groups), default=0) * count > 2 * sum(map(sum, sizes)):
            return None
        ranges = _by_groups(sizes, count)
    elif kinds == {"jsonl"} and not any(map(is_compressed, paths)):
        ranges = _by_bytes([shard.bytes for shard in shards], count)
    else:
        return None
    return [_shard(shards, one) for one in ranges]


# Of a shard: the number of a file, and where its part begins and ends.
_Ranges = list[tuple[int, int, int]]


def _by_bytes(sizes: Sequence[int], count: int) -> list[_Ranges]:
    total, ends = sum(sizes), list(accumulate(sizes))
    found: list[_Ranges] = []
    for first, last in pairwise(total * number // count for number in range(count + 1)):
        files = range(bisect_right(ends, first), min(bisect_left(ends, last) + 1, len(sizes)))
        begins = (ends[file] - sizes[file] for file in files)
        cuts = [(file, max(first - at, 0), min(last - at, sizes[file])) for file, at in zip(files, begins, strict=True)]
        found.append([(file, begin, end) for file, begin, end in cuts if begin < end])
    return found


def _by_groups(sizes: Sequence[Sequence[int]], count: int) -> list[_Ranges]:
    """A group belongs to the shard that its middle is in, of rows."""
    total = sum(map(sum, sizes))
    limits = [total * number // count for number in range(1, count)]
    found: list[_Ranges] = [[] for _ in range(count)]
    place = 0
    for file, groups in enumerate(sizes):
        for group, rows in enumerate(groups):
            ranges = found[bisect_left(limits, place + rows / 2)]
            place += rows
            if ranges and ranges[-1][0] == file:
                ranges[-1] = (file, ranges[-1][1], group + 1)
            else:
                ranges.append((file, group, group + 1))
    return found


def _shard(shards: Sequence[SourceShard], ranges: _Ranges) -> SourceShard:
    rows = tuple(FilePart(shards[file].rows[0], begin, end, shards[file].version) for file, begin, end in ranges)
    version = " ".join(shards[file].version for file, _, _ in ranges)
    return SourceShard(rows, version)
