"""Which rows of which shards become a shard, where all are divided again."""

from __future__ import annotations

from collections.abc import Sequence

from safetensors_spark.pipeline._task import Piece


def pieces_of(names: Sequence[str], rows: Sequence[int], shard: int, shards: int) -> tuple[Piece, ...]:
    """The rows of one of so many shards of about the same number of rows, in order."""
    total = sum(rows)
    begin, end = total * shard // shards, total * (shard + 1) // shards
    found, place = [], 0
    for name, count in zip(names, rows, strict=True):
        first, last = max(begin - place, 0), min(end - place, count)
        if first < last:
            found.append(Piece(name, first, last))
        place += count
    return tuple(found)
