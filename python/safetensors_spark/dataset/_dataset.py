"""Datasets of samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike

from safetensors_spark._errors import SafetensorsSparkError, counted, printable
from safetensors_spark._files.contents import Contents, look
from safetensors_spark._files.manifest import Column, Manifest, Shard
from safetensors_spark._files.numpy_dtypes import Array, numpy_dtype
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark._files.verify import Progress, Report, verify_contents
from safetensors_spark.dataset._arrays import Batch, array_cast, array_columns, array_dtype
from safetensors_spark.dataset._batches import Batches, Finish, casts, plan
from safetensors_spark.dataset._cache import Downloads, Local, fetcher
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import as_array, unlike

# Shards that are downloaded before they are needed.
_AHEAD = 2
# Columns that `repr` shows.
_SHOWN = 8

Sample = dict[str, Array]


def open_dataset(
    path: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    columns: Sequence[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int = 50 << 30,
) -> Dataset:
    """Open a dataset that was written with `batch_size`, or a folder of safetensors files, by samples.

    Args:
        path: the folder: a local path, or a URL of fsspec.
        storage_options: what fsspec's file system takes.
        columns: the columns to read, all by default. No byte of others is read.
        cache_dir: the directory for shards of remote datasets, which all processes of the machine may share; by default
            that of the environment variable `SAFETENSORS_SPARK_CACHE`, or else in the user's cache directory.
        cache_bytes: the limit of that directory: shards used longest ago are deleted.

    Of a folder without a manifest the files are taken in the order of their names; the first dimension of their
    tensors, in which those of a file must agree, counts samples.

    Raises:
        FileNotFoundError: there is no dataset.
        InvalidManifestError, InvalidFileError: what tells of the samples cannot be relied on.
        SafetensorsSparkError: it is a dataset by key, which has no samples; or a column is not in it.
    """
    contents = look(path, storage_options)
    if contents.kind == "checkpoint":
        raise SafetensorsSparkError(
            f"{contents.location} is a checkpoint, which has no samples: open it with `open_store`."
        )
    if contents.manifest and contents.manifest.mode != "batch":
        raise SafetensorsSparkError(
            f"{contents.location} was written by key, and has no samples: read it with `open_store`, or with Spark and "
            "`layout=long`."
        )
    for column in contents.manifest.columns if contents.manifest else ():
        if column.has_offsets:
            raise SafetensorsSparkError(
                f"{contents.location}: column `{column.name}` is {column.kind}, which `open_dataset` does not read. "
                "Read the shards with the `safetensors` library."
            )
    return Dataset(contents.pinned(), columns, fetcher(contents.folder, cache_dir, cache_bytes))


class Dataset:
    """Samples in the order of the rows that were written: dictionaries of arrays, by column.

        points[7], points[-1]          # a sample
        points[10:20], points[[3, 1]]  # samples, stacked; also by a mask of booleans
        points["x"]                    # a column of all samples

    Arrays are copies, which the caller may change. No other bytes of a shard are read. A dataset may be used from many
    threads, and sent to other processes.

    Attributes:
        samples: where they lie, for other readers of them, such as `safetensors_spark.torch`.
    """

    def __init__(self, contents: Contents, columns: Sequence[str] | None, files: Local | Downloads) -> None:
        self._contents = contents
        self._all_columns = _columns(contents)
        self.samples = Samples(contents, _chosen(contents, self._all_columns, columns), files)
        self._open = self.samples.open(as_array)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, dtype and shape of a sample, where all samples agree in them, of the columns that are read."""
        return tuple(column for column in self._all_columns if column.name in self.samples.columns)

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files, in the order of their samples."""
        return self.samples.shards

    @property
    def manifest(self) -> Manifest | None:
        """What the dataset says of itself; None for a folder of files."""
        return self._contents.manifest

    def verify(self, workers: int = 4, progress: Progress = lambda _: None) -> Report:
        """Read every byte, and tell what is not as it was written."""
        return verify_contents(self._contents, workers, progress)

    def __len__(self) -> int:
        return len(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Array) -> Batch: ...
    @overload
    def __getitem__(self, index: str) -> Array: ...
    def __getitem__(self, index: int | slice | Sequence[int] | Array | str) -> Sample | Batch | Array:
        """A sample by its number; samples by a slice, by numbers or by a mask, stacked; or a column by its name.

        Raises `IndexError` for a number that no sample has, and `KeyError` for a column that is not there.
        """
        if isinstance(index, str):
            return self._column(index)
        if isinstance(index, slice):
            return self._slice(range(len(self))[index])
        if not isinstance(index, int) and (isinstance(index, list | range) or getattr(index, "ndim", False)):
            return self.take(index)
        which, row = self._locate(self.samples.number(index))
        return _sample(self._open.columns(self.shards[which]), row)

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """The samples of these numbers, as PyTorch's DataLoader asks for them."""
        return [self[index] for index in indices]

    def take(self, indices: Sequence[int] | Array) -> Batch:
        """The samples of these numbers, or those where a mask is true, stacked. Negative numbers count from the end."""
        numbers = self.samples.numbers(indices)
        which, rows = self.samples.locate(numbers)
        batch: Batch = {}
        used = np.unique(which)
        for number in used:
            first, shard = self.shards[used[0]], self.shards[number]
            places = np.flatnonzero(which == number)
            for name, array in self._open.columns(shard).items():
                if name not in batch:
                    batch[name] = np.empty((len(numbers), *array.shape[1:]), array.dtype)
                _check_alike(name, first, batch[name], shard, array)
                _put(array, rows[places], batch[name], places)
        return batch or self._empty()

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        nodes: int = 1,
        window_bytes: int = 1 << 30,
        threads: int = 2,
        dtype: Mapping[str, DTypeLike] | DTypeLike | None = None,
        transform: Callable[[Batch], Any] | None = None,
    ) -> Batches:
        """One rank's share of the samples, in batches. An iteration is an epoch.

        A batch is a dictionary of arrays, by column. They are copies, which the caller may change.

        Args:
            batch_size: how many samples a batch of each rank has.
            shuffle: take samples in a random order: shards in a random order, and the samples of those shards that are
                read together in a random order.
            seed: decides the order, together with the epoch. It must be the same on all ranks.
            drop_last: leave out the samples at the end of an epoch that do not fill a batch on every rank.
            rank, world_size: which of how many processes this one is. All have the same number of batches.
            nodes: if more than one, each of so many nodes takes only samples of its own part of an epoch, and of a
                remote dataset downloads only the shards of that part. Node 0 has the first `world_size / nodes` ranks.
            window_bytes: shuffle the samples of so many bytes of shards together, but of no more than 128 shards.
            threads: how many threads make batches while the caller is busy; 0 for none.
            dtype: cast columns of floating-point numbers to this dtype; or a dictionary with a dtype for each column
                to cast.
            transform: called with each batch, in those threads; what it returns takes the batch's place. A program that
                ends, as by Ctrl-C, waits for the calls that are running.

        Raises `TypeError` for an argument of another kind, and `ValueError` for a number that is out of range. Warns
        where there are fewer samples than ranks: some of them are then taken by several ranks.
        """
        dtypes = casts(dtype, self.samples, array_dtype)
        return Batches(
            array_columns(self.samples),
            plan(self.samples, batch_size, shuffle, seed, drop_last, window_bytes, rank, world_size, nodes),
            rank,
            threads,
            Finish(None if dtypes is None else partial(array_cast, dtypes), transform),
        )

    def __iter__(self) -> Iterator[Sample]:
        for which, shard in enumerate(self.shards):
            self._prefetch(which, which)
            found = self._open.open(shard)
            for row in range(shard.samples or 0):
                found.check()
                yield _sample(found.columns, row)

    def __repr__(self) -> str:
        columns = printable(", ".join(map(_shown, self.columns[:_SHOWN])))
        more = f" and {len(self.columns) - _SHOWN} more columns" if len(self.columns) > _SHOWN else ""
        size = f"{counted(len(self), 'sample')} of {columns}{more} in {counted(len(self.shards), 'shard')}"
        return f"<Dataset {self._contents.location}: {size}>"

    def _locate(self, number: int) -> tuple[int, int]:
        """The sample's shard, and its row there."""
        which = self.samples.which(number)
        return which, number - int(self.samples.begins[which])

    def _prefetch(self, first: int, last: int) -> None:
        """These shards, which are needed now, and the next ones."""
        self._open.prefetch(self.shards[first : last + 1 + _AHEAD])

    def _column(self, name: str) -> Array:
        if name not in self.samples.columns:
            raise KeyError(
                f"{self._contents.location} has no column `{name:.200}`; it is read with "
                f"{', '.join(self.samples.columns)}"
            )
        empty = self._empty()[name]
        column = np.empty((len(self), *empty.shape[1:]), empty.dtype)
        for begin, shard in zip(self.samples.begins.tolist(), self.shards, strict=True):
            array = self._open.columns(shard)[name]
            _check_alike(name, self.shards[0], column, shard, array)
            column[begin : begin + len(array)] = array
        return column

    def _empty(self) -> Batch:
        """A batch without samples."""
        if self.shards:
            arrays = self._open.columns(self.shards[0])
            return {name: np.empty((0, *array.shape[1:]), array.dtype) for name, array in arrays.items()}
        return {one.name: np.empty((0, *(one.shape or ())), numpy_dtype(one.dtype or "F32")) for one in self.columns}

    def _slice(self, numbers: range) -> Batch:
        if not numbers:
            return self._empty()
        which, row = self._locate(numbers[0])
        if which != self.samples.which(numbers[-1]):
            return self.take(np.arange(numbers.start, numbers.stop, numbers.step))
        stop = row + numbers.stop - numbers.start
        within = slice(row, stop if stop >= 0 else None, numbers.step)
        return {name: array[within].copy() for name, array in self._open.columns(self.shards[which]).items()}


def _sample(columns: Mapping[str, Array], row: int) -> Sample:
    # `array[row]` alone would be a number, and no array, where samples have no dimension.
    return {name: array[row, ...].copy() for name, array in columns.items()}


def _check_alike(name: str, shard: Shard, array: Array, other_shard: Shard, other: Array) -> None:
    if other.shape[1:] != array.shape[1:] or other.dtype != array.dtype:
        raise unlike(name, (shard, array.dtype, array.shape[1:]), (other_shard, other.dtype, other.shape[1:]))


def _put(source: Array, rows: Array, target: Array, places: Array) -> None:
    if len(places) == places[-1] - places[0] + 1:
        np.take(source, rows, axis=0, out=target[places[0] : places[-1] + 1], mode="clip")
    else:
        target[places] = source[rows]


def _columns(contents: Contents) -> tuple[Column, ...]:
    if contents.manifest:
        return contents.manifest.columns
    header = contents.header(contents.shards[0])
    return tuple(Column(tensor.name, tensor.dtype, tensor.shape[1:]) for tensor in header.tensors)


def _shown(column: Column) -> str:
    shape = "" if column.shape is None else f" {list(column.shape)}"
    return f"{column.name:.100} {column.dtype or 'of unknown dtype'}{shape}"


def _chosen(contents: Contents, columns: tuple[Column, ...], chosen: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(chosen, str):
        raise TypeError(f"columns is the string {chosen!r:.200}, expected a list of names: columns=[{chosen!r:.200}]")
    names = tuple(column.name for column in columns)
    unknown = [name for name in chosen or () if name not in names]
    if unknown:
        raise SafetensorsSparkError(f"{contents.location} has no column `{unknown[0]}`; it has {', '.join(names)}.")
    return names if chosen is None else tuple(chosen)
