"""A dataset by packs of whole samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError, counted
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._batched import Batched
from safetensors_spark.dataset._best_fit import BestFit, Long
from safetensors_spark.dataset._block_order import check_ragged
from safetensors_spark.dataset._columns import Columns, filled
from safetensors_spark.dataset._cut import Offsets, Pieces
from safetensors_spark.dataset._groups import GroupedSamples
from safetensors_spark.dataset._order import Shuffle
from safetensors_spark.dataset._ragged import packed_offsets
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._spans import Spans

_ADDED = ("input_pos", "document_ids", "cu_seqlens", "max_seqlen")
Padding = Mapping[str, float] | float


class Packs(Batched):
    """Samples packed into sequences of one length, which `Dataset.pack` makes."""

    def __init__(self, samples: PackedSamples) -> None:
        self.samples: PackedSamples = samples

    def __len__(self) -> int:
        """How many packs an epoch takes."""
        return self.samples.places

    def __repr__(self) -> str:
        return f"<Packs of {self.samples.location}: {len(self):,} of length {self.samples.length:,}>"


class PackedSamples(GroupedSamples):
    """Samples in groups, each of which is a row of one length."""

    def __init__(self, samples: Samples, length: int, long: Long, padding: Padding, window_bytes: int) -> None:
        self.length = whole("length", length, 1, (1 << 31) - 1)
        check_ragged(samples, "packs")
        for name in samples.columns:
            if name in _ADDED:
                raise SafetensorsSparkError(
                    f"{samples.location} has a column `{name}`, which packs have of their own: leave it out with "
                    "`open_dataset(..., columns=[...])`."
                )
        if long not in get_args(Long):
            raise ValueError(f"long is {long!r:.100}, expected one of {', '.join(get_args(Long))}")
        self.padding = _paddings(samples, padding)
        super().__init__(
            samples, samples.columns[0], BestFit(self.length, long), whole("window_bytes", window_bytes, 1)
        )
        self._check_filled()
        # What a batch has of them.
        self.kinds = dict.fromkeys(self.columns, "fixed")

    def _check_filled(self) -> None:
        if not self.places and len(self):
            raise SafetensorsSparkError(
                f"{self.location}: all {counted(len(self), 'sample')} are empty, and empty samples are in no pack."
            )
        if self.places == 1 and (values := int(self.members(0)[2].sum())) < self.length:
            warnings.warn(
                f"{self.location} has {counted(values, 'value')} to pack, so that the only pack of {self.length:,} is "
                f"filled up with {self.length - values:,} more.",
                stacklevel=4,
            )

    def choose(self, columns: Columns[Any, Any], taken: Array) -> _ChosenPacks:
        return self.cut(columns, self.pieces(columns.offsets, taken, None), len(taken))

    def pieces(self, offsets: Offsets, numbers: Array, shuffle: Shuffle | None) -> Pieces:
        """Of what the packs of these numbers consist, which are those of any order."""
        found = [self.members(group) for group in numbers.tolist()]
        samples, begins, lengths = (np.concatenate([one[part] for one in found]) for part in range(3))
        which, rows = self.locate(samples)
        starts = np.empty_like(begins)
        for shard in np.unique(which).tolist():
            some = np.flatnonzero(which == shard)
            starts[some] = offsets(shard)[rows[some]] + begins[some]
        return Pieces(np.repeat(np.arange(len(found)), [len(one[0]) for one in found]), which, starts, lengths)

    def cut(self, columns: Columns[Any, Any], pieces: Pieces, count: int) -> _ChosenPacks:
        return _ChosenPacks(columns, pieces, count, self)

    def _batches(self, size: int) -> str:
        return f"batches of {size:,} packs"


class _ChosenPacks:
    """Packs that were chosen, to be taken some at a time: see `Chosen`."""

    def __init__(self, columns: Columns[Any, Any], pieces: Pieces, count: int, samples: PackedSamples) -> None:
        self._opened, self._new = columns.opened(pieces.which), columns.new
        self._spans = Spans(self._opened.which, pieces.starts, pieces.lengths)
        self._bounds = pieces.rows.searchsorted(np.arange(count + 1))
        self._length, self._padding = samples.length, samples.padding

    def piece(self, begin: int, end: int) -> Callable[[], dict[str, Any]]:
        """What copies the packs from `begin` to before `end`, in any thread, to arrays of shape `[packs, length]`."""
        first, last = int(self._bounds[begin]), int(self._bounds[end])
        spans, count = self._spans.take(first, last), end - begin
        # The end of each pack among the values of all.
        ends = spans.offsets[self._bounds[begin : end + 1] - first].tolist()
        batch: dict[str, Any] = {}
        copies: list[Callable[[], None]] = []
        for name, columns in self._opened.columns.items():
            values, memory = self._new(spans.total, columns[0])
            padded, _ = self._new(count * self._length, columns[0])
            batch[name] = padded.reshape(count, self._length, *columns[0].shape)
            copies.append(partial(spans.copy, [column.rows for column in columns], memory))
            copies.append(partial(_pad, values, ends, batch[name], self._padding[name]))
        rows = np.repeat(np.arange(count), np.diff(self._bounds[begin : end + 1]))
        copies.append(partial(_tell, batch, rows, spans.lengths, count, self._length))
        return partial(filled, batch, self._opened.check, copies)


def _pad(values: Any, ends: list[int], rows: Any, padding: float) -> None:
    for row, (begin, end) in enumerate(pairwise(ends)):
        rows[row, : end - begin] = values[begin:end]
        rows[row, end - begin :] = padding


def _tell(batch: dict[str, Any], rows: Array, lengths: Array, count: int, length: int) -> None:
    batch |= documents(rows, lengths, count, length)


def documents(rows: Array, lengths: Array, count: int, length: int) -> dict[str, Any]:
    """What tells the samples of packs apart, for samples of these lengths in these rows, in ascending order.

    What fills up a row is a document of its own, whose positions continue from the one before, as in torchtune.
    """
    gaps = length - np.bincount(rows, lengths, count).astype(np.int64)
    padded = np.flatnonzero(gaps)
    row, size = np.concatenate([rows, padded]), np.concatenate([lengths, gaps[padded]])
    order = np.argsort(row, kind="stable")
    row, size, is_gap = row[order], size[order], order >= len(rows)
    offsets = np.concatenate([[0], np.cumsum(size)])
    begins = offsets[:-1].copy()
    begins[is_gap] = begins[np.flatnonzero(is_gap) - 1]
    first = row.searchsorted(np.arange(count))
    ids = np.arange(len(row)) - first[row]
    return {
        "input_pos": (np.arange(count * length) - np.repeat(begins, size)).reshape(count, length),
        "document_ids": np.repeat(ids, size).astype(np.int32).reshape(count, length),
        "cu_seqlens": packed_offsets(offsets),
        "max_seqlen": int(size.max()),
    }


def _paddings(samples: Samples, padding: Padding) -> Mapping[str, float]:
    """What fills up each column. Raises for columns that do not exist, and for what their dtypes do not have."""
    if isinstance(padding, Mapping):
        for name in padding:
            if name not in samples.columns:
                raise SafetensorsSparkError(
                    f"`padding` names the column `{name:.200}`; {samples.location} is read with the columns "
                    f"{', '.join(samples.columns)}."
                )
    found = {name: padding.get(name, 0) if isinstance(padding, Mapping) else padding for name in samples.columns}
    for column in samples._read:
        _check_padding(column, found[column.name])
    return found


def _check_padding(column: Column, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"padding of the column `{column.name:.200}` is {value!r:.100}, expected a number")
    dtype = np.dtype("f8") if column.dtype is None else numpy_dtype(column.dtype)
    if dtype.kind in "iu":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if value != int(value) or not least <= value <= most:
            raise ValueError(
                f"padding of the column `{column.name:.200}` is {value}, expected a whole number from {least} to {most}"
            )
