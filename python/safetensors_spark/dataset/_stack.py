"""Columns of several shards as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from safetensors_spark._files.manifest import Column, Shard
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark.dataset._origin import taken
from safetensors_spark.dataset._ragged import Ragged, stack
from safetensors_spark.dataset._shards import unlike

# A column of a shard, or of several.
Part: TypeAlias = Array | Ragged


def stacked(parts: Iterable[tuple[Shard, Mapping[str, Part], Array, Array]], count: int) -> dict[str, Part]:
    """So many samples, of one shard or more.

    A part is a shard, its columns, the places of some samples, and their numbers in the shard. The columns are
    looked at before the next part is asked for.
    """
    arrays: dict[str, Array] = {}
    ragged: dict[str, list[Ragged]] = {}
    names: Iterable[str] = ()
    first: Shard | None = None
    which, numbers = np.empty(count, np.int64), np.empty(count, np.int64)
    for part, (shard, columns, places, rows) in enumerate(parts):
        first = first or shard
        which[places], numbers[places] = part, np.arange(len(places))
        names = columns
        for name, column in columns.items():
            if isinstance(column, Ragged):
                found = ragged.setdefault(name, [])
                found.append(column[rows])
                _check_alike(name, first, found[0], shard, column)
            else:
                if name not in arrays:
                    arrays[name] = np.empty((count, *column.shape[1:]), column.dtype)
                _check_alike(name, first, arrays[name], shard, column)
                _put(column, rows, arrays[name], places)
    whole = {name: some[0] if len(some) == 1 else stack(some, which, numbers) for name, some in ragged.items()}
    return {name: arrays[name] if name in arrays else whole[name] for name in names}


def joined(columns: Callable[[], Iterable[tuple[Shard, Part]]], count: int, name: str) -> Part:
    """All samples of a column, of one shard or more; each shard's is looked at before the next one is asked for.

    Samples of different lengths are not copied if there is one shard.
    """
    shard, first = next(iter(columns()))
    if isinstance(first, Ragged):
        return _joined_ragged(lambda: ((shard, part) for shard, part in columns() if isinstance(part, Ragged)), name)
    column = np.empty((count, *first.shape[1:]), first.dtype)
    at = 0
    for other, part in columns():
        _check_alike(name, shard, column, other, part)
        column[at : at + len(part)] = part
        at += len(part)
    return column


def own(column: Part, row: int) -> Array | str | bytes:
    """A sample in memory of its own."""
    if not isinstance(column, Ragged):
        # `column[row]` alone would be a number, and no array, where samples have no dimension.
        return column[row, ...].copy()
    found: Array | str | bytes = column[row]
    return found.copy() if isinstance(found, np.ndarray) else found


def no_samples(column: Column) -> Part:
    """The column of a dataset without samples."""
    empty = np.empty((0, *(column.shape or ())), numpy_dtype(column.dtype or "F32"))
    return Ragged(empty, np.zeros(1, np.int64), column.kind) if column.has_offsets else empty


def _check_alike(name: str, shard: Shard, part: Part, other_shard: Shard, other: Part) -> None:
    one, two = (found.values if isinstance(found, Ragged) else found for found in (part, other))
    if two.shape[1:] != one.shape[1:] or two.dtype != one.dtype:
        raise unlike(name, (shard, one.dtype, one.shape[1:]), (other_shard, two.dtype, two.shape[1:]))


def _put(source: Array, rows: Array, target: Array, places: Array) -> None:
    if len(places) == places[-1] - places[0] + 1:
        np.take(source, rows, axis=0, out=target[places[0] : places[-1] + 1], mode="clip")
    else:
        target[places] = source[rows]


def _joined_ragged(columns: Callable[[], Iterable[tuple[Shard, Ragged]]], name: str) -> Ragged:
    shard, column = next(iter(columns()))
    first, lengths, origins = column[:0], [], []
    for other, part in columns():
        _check_alike(name, shard, first, other, part)
        lengths.append(part.lengths)
        origins.append(part._origin)
    if len(lengths) == 1:
        return column
    counts = [len(one) for one in lengths]
    offsets = np.cumsum(np.concatenate([[0], *lengths]))
    values = np.empty((offsets[-1], *first.values.shape[1:]), first.values.dtype)
    at = 0
    for _, part in columns():
        values[at : at + len(part.values)] = part.values
        at += len(part.values)
    numbers = np.concatenate([np.arange(count) for count in counts])
    origin = taken(origins, np.repeat(np.arange(len(counts)), counts), numbers)
    return Ragged(values, offsets, first.kind, origin)
