"""Datasets of samples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from safetensors_spark import _html
from safetensors_spark._errors import SafetensorsSparkError, counted, printable
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.look import look
from safetensors_spark._files.manifest import Column, Manifest, Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark._files.verify import Progress, Report, verify_contents
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._arrays import Batch, times, with_times
from safetensors_spark.dataset._batched import Batched
from safetensors_spark.dataset._best_fit import Long
from safetensors_spark.dataset._block_order import BlockSamples
from safetensors_spark.dataset._blocks import Blocks
from safetensors_spark.dataset._cache import Downloads, Local, fetcher
from safetensors_spark.dataset._choose import choose
from safetensors_spark.dataset._first_rows import first_rows
from safetensors_spark.dataset._pack import PackedSamples, Packs, Padding
from safetensors_spark.dataset._ragged import Ragged
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import as_array
from safetensors_spark.dataset._stack import joined, no_samples, own, stacked

# Shards that are downloaded before they are needed.
_AHEAD = 2
# Columns that `repr` shows.
_SHOWN = 8

Sample = dict[str, Any]


def open_dataset(
    path: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    columns: Sequence[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = 50 << 30,
) -> Dataset:
    """Open a dataset that was written with `batch_size`, or a folder of safetensors files or partitions, by samples.

    Args:
        path: the folder: a local path, or an fsspec URL.
        storage_options: options of fsspec's file system.
        columns: the columns to read, all by default. The bytes of others are not read.
        cache_dir: the directory for shards of remote datasets, which all processes of the machine may share; by default
            that of the environment variable `SAFETENSORS_SPARK_CACHE`, or else in the user's cache directory.
        cache_bytes: the limit of that directory: the least recently used shards are deleted.

    In a folder without a manifest the files are read in the order of their names. The first dimension of the tensors,
    which must be equal for all tensors of a file, counts samples.

    Partitions are folders of such datasets or files that are named `key=value`, also nested. They are read
    in the order of their names, as one dataset, whose last columns are the keys. Types are those that Spark infers:
    integers of 32 or 64 bits, doubles, dates, times or text. Files from which no column is read are not opened.

    Raises:
        FileNotFoundError: there is no dataset.
        InvalidManifestError, InvalidFileError: the manifest or a header is not valid.
        SafetensorsSparkError: it is a dataset by key, which has no samples; or it does not have a column.
    """
    contents = look(path, storage_options)
    for one in (contents, *(part.contents for part in contents.parts.values())):
        _check_batches(one)
    return Dataset(contents.pinned(), columns, fetcher(contents.folder, cache_dir, cache_bytes))


def _check_batches(contents: Contents) -> None:
    if contents.kind == "checkpoint":
        raise SafetensorsSparkError(
            f"{contents.location} is a checkpoint, which has no samples: open it with `open_store`."
        )
    if contents.manifest and contents.manifest.mode != "batch":
        raise SafetensorsSparkError(
            f"{contents.location} was written by key, and has no samples: read it with `open_store`, or with Spark and "
            "`layout=long`."
        )


class Dataset(Batched):
    """Samples in the order of the written rows: dictionaries of arrays, by column.

        points[7], points[-1]          # a sample
        points[10:20], points[[3, 1]]  # samples, stacked; also by a mask of booleans
        points["x"]                    # a column of all samples

    Arrays are copies, which the caller may change; dates and times are NumPy's, in UTC. Text is `str`, and binary
    columns are `bytes`. For these and for ragged columns, several samples are a `Ragged`, which may be a read-only
    view. Only the bytes of these samples are read. A dataset may be used from many threads, and sent to processes.

    Attributes:
        samples: where the samples are stored, for other readers, such as `safetensors_spark.torch`.
    """

    def __init__(self, contents: Contents, columns: Sequence[str] | None, files: Local | Downloads) -> None:
        self._contents = contents
        self._columns = choose(contents, columns)
        self.samples = Samples(contents, self._columns, files)
        self._open = self.samples.open(as_array)
        self._times = times(self.samples.kinds)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, dtype and shape of the columns that are read; dtype and shape only if all samples have the same."""
        return self._columns

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files, in the order of their samples."""
        return self.samples.shards

    @property
    def manifest(self) -> Manifest | None:
        """The dataset's manifest; None for a folder of files or of partitions."""
        return self._contents.manifest

    def select_columns(self, columns: Sequence[str]) -> Dataset:
        """The same samples with only these columns. The bytes of others are not read.

        Raises `SafetensorsSparkError` for a column that does not exist.
        """
        for name in columns:
            if name not in self.samples.columns:
                raise SafetensorsSparkError(
                    f"{self._contents.location} has no column `{name}`; it is read with "
                    f"{', '.join(self.samples.columns)}."
                )
        return Dataset(self._contents, columns, self.samples.files)

    def verify(self, workers: int = 4, progress: Progress = lambda _: None) -> Report:
        """Read every byte, and report damage."""
        return verify_contents(self._contents, workers, progress)

    def __len__(self) -> int:
        return len(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Array) -> Batch: ...
    @overload
    def __getitem__(self, index: str) -> Any: ...
    def __getitem__(self, index: int | slice | Sequence[int] | Array | str) -> Any:
        """A sample by number; samples by slice, numbers or mask, stacked; or a column by name.

        Raises `IndexError` for a number out of range, and `KeyError` for a column that does not exist.
        """
        if isinstance(index, str):
            return self._column(index)
        if isinstance(index, slice):
            return self._slice(range(len(self))[index])
        if not isinstance(index, int) and (isinstance(index, list | range) or getattr(index, "ndim", False)):
            return self.take(index)
        which, row = self._locate(self.samples.number(index))
        return self._sample(self._open.columns(self.shards[which]), row)

    def _sample(self, columns: Mapping[str, Array | Ragged], row: int) -> Sample:
        return with_times(self._times, {name: own(column, row) for name, column in columns.items()})

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """The samples with these numbers, for PyTorch's DataLoader."""
        return [self[index] for index in indices]

    def take(self, indices: Sequence[int] | Array) -> Batch:
        """The samples with these numbers, or where a mask is true, stacked. Negative numbers count from the end."""
        numbers = self.samples.numbers(indices)
        if not len(numbers):
            return self._empty()
        which, rows = self.samples.locate(numbers)
        places = [np.flatnonzero(which == number) for number in np.unique(which)]
        shards = ((self.shards[which[some[0]]], some) for some in places)
        parts = ((shard, self._open.columns(shard), some, rows[some]) for shard, some in shards)
        return with_times(self._times, stacked(parts, len(numbers)))

    def blocks(self, length: int) -> Blocks:
        """The values of all samples, concatenated and cut into blocks of `length`, for training on streams of
        tokens.

            tokens = open_dataset("sequences", columns=["tokens"]).blocks(2048)
            tokens.batches(8, shuffle=True)    # arrays of shape [8, 2048]
            safetensors_spark.torch.BatchDataset(tokens, 8, shuffle=True)

        Samples are shuffled, and then cut into blocks, which begin and end anywhere in a sample. Values at the end of
        an epoch that do not fill a block are dropped. All columns that are read must be ragged, text or bytes, with
        the same lengths of samples. The headers of all shards are read now, to count the blocks.

        Raises `SafetensorsSparkError` for columns of other kinds, and if all values together are less than a block.
        """
        return Blocks(BlockSamples(self.samples, whole("length", length, 1, 1 << 40)))

    def pack(self, length: int, *, long: Long = "error", padding: Padding = 0, window_bytes: int = 1 << 30) -> Packs:
        """Whole samples, packed into sequences of one length, for training on samples that differ in length.

            packs = open_dataset("sequences", columns=["tokens"]).pack(2048)
            packs.batches(8, shuffle=True)    # arrays of shape [8, 2048]
            safetensors_spark.torch.BatchDataset(packs, 8, shuffle=True)

        Samples of a window are packed by best fit, the longest first. Packs are the same in all epochs, and each epoch
        takes them in another order. All columns that are read must be ragged, text or bytes, with the same
        lengths of samples. The offsets of all shards are read now, to count the packs.

        In addition to the columns a batch has these arrays, as torchtune and FlashAttention expect them:

        - `input_pos`, `[batch, length]`: the position of each value in its sample. It continues in the padding.
        - `document_ids`, `[batch, length]`, of 32 bits: the number of the value's sample in the pack, from 0 on. The
          padding is a separate document.
        - `cu_seqlens`, `[documents + 1]`, of 32 bits: where each document of the batch begins, and the last one ends,
          in the concatenated rows; `max_seqlen`: the length of the longest one.

        Args:
            long: what to do with a longer sample: `error`; `split` it into samples of `length` and a rest; or
                `truncate` it. Empty samples are dropped.
            padding: the values that fill up packs; or a dictionary with a number for some columns, and 0 for others.
            window_bytes: pack the samples of so many bytes of shards together, but of at most 128 shards.

        Raises `SafetensorsSparkError` for columns of other kinds, for a longer sample, and if all are empty;
        `TypeError` and `ValueError` for wrong arguments. Warns if all values together are less than a pack.
        """
        return Packs(PackedSamples(self.samples, length, long, padding, window_bytes))

    def __iter__(self) -> Iterator[Sample]:
        for which, shard in enumerate(self.shards):
            self._prefetch(which, which)
            found = self._open.open(shard)
            for row in range(shard.samples or 0):
                found.check()
                yield self._sample(found.columns, row)

    def __repr__(self) -> str:
        columns = printable(", ".join(map(_shown, self.columns[:_SHOWN])))
        more = f" and {len(self.columns) - _SHOWN} more columns" if len(self.columns) > _SHOWN else ""
        of = f" of {columns}{more}" if columns else ""
        size = f"{counted(len(self), 'sample')}{of} in {counted(len(self.shards), 'shard')}"
        return f"<Dataset {self._contents.location}: {size}>"

    def _repr_html_(self) -> str:
        """The first samples of a local dataset, for notebooks."""
        return first_rows(repr(self), list(map(_shown, self.columns)), self._first_samples, self._contents)

    def _first_samples(self) -> list[Sequence[Any]]:
        return [list(self[number].values()) for number in range(min(_html.ROWS, len(self)))]

    def _locate(self, number: int) -> tuple[int, int]:
        """The sample's shard, and its row there."""
        which = self.samples.which(number)
        return which, number - int(self.samples.begins[which])

    def _prefetch(self, first: int, last: int) -> None:
        """These shards, which are needed now, and the next ones."""
        self._open.prefetch(self.shards[first : last + 1 + _AHEAD])

    def _column(self, name: str) -> Any:
        if name not in self.samples.columns:
            raise KeyError(
                f"{self._contents.location} has no column `{name:.200}`; it is read with "
                f"{', '.join(self.samples.columns)}"
            )
        if not self.shards:
            return self._empty()[name]
        column = joined(lambda: ((one, self._open.columns(one)[name]) for one in self.shards), len(self), name)
        return with_times(self._times, {name: column})[name]

    def _empty(self) -> Batch:
        """A batch without samples."""
        if self.shards:
            columns: Mapping[str, Array | Ragged] = self._open.columns(self.shards[0])
        else:
            columns = {column.name: no_samples(column) for column in self.columns}
        empty = {name: column[:0].copy() for name, column in columns.items()}
        return with_times(self._times, empty)

    def _slice(self, numbers: range) -> Batch:
        if not numbers:
            return self._empty()
        which, row = self._locate(numbers[0])
        if which != self.samples.which(numbers[-1]):
            return self.take(np.arange(numbers.start, numbers.stop, numbers.step))
        stop = row + numbers.stop - numbers.start
        within = slice(row, stop if stop >= 0 else None, numbers.step)
        columns = self._open.columns(self.shards[which]).items()
        # Values of rows of different lengths stay where they are.
        batch = {
            name: column[within] if isinstance(column, Ragged) else column[within].copy() for name, column in columns
        }
        return with_times(self._times, batch)


def _shown(column: Column) -> str:
    if column.kind in ("text", "binary"):
        return f"{column.name:.100} {column.kind}"
    shape = "" if column.shape is None else f" {list(column.shape)}"
    kind = "" if column.kind == "fixed" else f" ({column.kind})"
    return f"{column.name:.100} {column.dtype or 'of unknown dtype'}{shape}{kind}"
