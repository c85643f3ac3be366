"""Datasets of tensors by key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, NoReturn

import numpy as np

from safetensors_spark import _html
from safetensors_spark._errors import DamagedShardError, InvalidTensorError, SafetensorsSparkError, counted
from safetensors_spark._extras import import_now
from safetensors_spark._files.cached_property import cached_property
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.look import look
from safetensors_spark._files.manifest import Manifest, Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import LocalFolder, StorageOptions
from safetensors_spark._files.verify import Progress, Report, verify_contents
from safetensors_spark.dataset._block import Place, Places, places_of
from safetensors_spark.dataset._cache import Local
from safetensors_spark.dataset._first_rows import first_rows
from safetensors_spark.dataset._forks import Forked
from safetensors_spark.dataset._gather import LARGE, Rows
from safetensors_spark.dataset._mapped import Mapped
from safetensors_spark.dataset._maps import MAPS, changed, check_length, check_whole, map_file, missing
from safetensors_spark.dataset._ranges import read_ranges
from safetensors_spark.dataset._recent import Recent
from safetensors_spark.dataset._tables import Table, open_table


def open_store(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Store:
    """Open a dataset that was written with `name_col`, a checkpoint, or a folder of safetensors files, by keys.

    Args:
        path: the folder or file: a local path, or an fsspec URL.
        storage_options: options of fsspec's file system.

    Look-ups use the dataset's index, which a write with `generate_index` makes, and read a few kilobytes of it. Without
    one, or if it is outdated, the first look-up reads the headers of all files.

    Raises:
        FileNotFoundError: there is no dataset.
        InvalidManifestError, InvalidCheckpointError: the manifest or the checkpoint's index is not valid.
        SafetensorsSparkError: it is a dataset in batches, which has no keys.
    """
    contents = look(path, storage_options)
    if contents.kind == "partitions":
        raise SafetensorsSparkError(
            f"{contents.location} holds folders of partitions, such as `{next(iter(contents.parts))}`: open one of "
            "them, or read all with Spark and `layout=long`."
        )
    if contents.manifest and contents.manifest.mode != "key_value":
        raise SafetensorsSparkError(
            f"{contents.location} was written in batches, and has no keys: read it with `open_dataset`."
        )
    return Store(contents.pinned())


class Store(Mapping[str, Array], Forked):
    """Tensors by key, as read-only arrays; keys are sorted as UTF-8.

    Local arrays are views of the mapped files, so bytes are read on first access. At a URL arrays are read on
    demand. If a key is in several shards of a dataset that was written without an index, the last one counts;
    in several files of a folder, the first look-up raises an error. A store may be
    used from many threads, and sent to other processes.
    """

    def __init__(self, contents: Contents) -> None:
        if contents.manifest and contents.manifest.index_parts:
            import_now("pyarrow.compute", "pyarrow.parquet")
        self._contents = contents
        self._maps: Recent[_Map] = Recent(MAPS)
        self._opened: Table | None = None
        super().__init__()

    def _begin(self) -> None:
        self._opening = Lock()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files, in the order of writing or of their names."""
        return self._contents.shards

    @property
    def manifest(self) -> Manifest | None:
        """The dataset's manifest; None for a checkpoint, a folder of files, or one file."""
        return self._contents.manifest

    def verify(self, workers: int = 4, progress: Progress = lambda _: None) -> Report:
        """Read every byte, and report damage."""
        return verify_contents(self._contents, workers, progress)

    def __getitem__(self, key: str) -> Array:
        """Raises `KeyError`; or an error about a damaged shard or index, or a dataset that changed."""
        place = self._table.find(key) or self._absent(key)
        if self._is_local:
            return self._look(place, key, self._mapped(place[0]))
        return self._read(places_of([place]), [key])[0]

    def get_many(self, keys: Iterable[str]) -> list[Array]:
        """The arrays of these keys, in their order. Adjacent remote arrays are read together."""
        names = _listed(keys, "get_many")
        if not self._is_local:
            return self._read(self._places(names), names)
        find, look, absent = self._table.find, self._look, self._absent
        places = [find(key) or absent(key) for key in names]
        maps = {number: self._mapped(number) for number in {place[0] for place in places}}
        return [look(place, key, maps[place[0]]) for place, key in zip(places, names, strict=True)]

    def stack(self, keys: Iterable[str]) -> Array:
        """The arrays of these keys copied into one, in their order; all must have the same dtype and shape.

        Raises `InvalidTensorError` if they do not, and `ValueError` for no keys.
        """
        names = _listed(keys, "stack")
        if not names:
            raise ValueError("there are no keys, so the dtype and shape of their arrays are unknown")
        places = self._places(names)
        if (other := places.unlike) is not None:
            raise InvalidTensorError(
                f"`{names[other]:.200}` is {_said(places[other])} and `{names[0]:.200}` is {_said(places[0])}, which "
                "cannot be stacked: take them with `get_many`."
            )
        return self._copied(places, names[0]) if self._is_local else np.stack(self._read(places, names))

    def _places(self, keys: Sequence[str]) -> Places:
        if keys and all(isinstance(key, str) for key in keys):
            places, there = self._table.find_many(keys)
            if there.all():
                return places
        return places_of([self._table.find(key) or self._absent(key) for key in keys])

    def __contains__(self, key: object) -> bool:
        return self._table.find(key) is not None

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __eq__(self, other: object) -> bool:
        """Stores are not compared by their arrays."""
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        rows = f"{counted(self.manifest.samples, 'row')} in " if self.manifest else ""
        return f"<Store {self._contents.location}: {rows}{counted(len(self.shards), 'file')}>"

    def _repr_html_(self) -> str:
        """The first tensors of a local store, for notebooks."""
        return first_rows(repr(self), ["key", "tensor"], self._first_tensors, self._contents)

    def _first_tensors(self) -> list[Sequence[Any]]:
        return [(key, self[key]) for key in islice(self, _html.ROWS)]

    @property
    def _table(self) -> Table:
        return self._open_table() if self._opened is None else self._opened

    def _open_table(self) -> Table:
        with self._opening:
            if self._opened is None:
                self._opened = open_table(self._contents)
            return self._opened

    @cached_property
    def _is_local(self) -> bool:
        return isinstance(self._contents.folder, LocalFolder)

    def _absent(self, key: object) -> NoReturn:
        hint = "" if isinstance(key, str) else ": keys are strings"
        raise KeyError(f"{key!r:.200} is not in {self._contents.location}{hint}")

    def _look(self, place: Place, key: str, mapped: memoryview) -> Array:
        """A view of the mapped shard."""
        _, start, spec = place
        try:
            return np.ndarray(spec.shape, spec.numpy, mapped, start)
        except (ValueError, OverflowError) as error:
            raise self._no_array(place, key, error) from None

    def _copied(self, places: Places, key: str) -> Array:
        """Tensors of mapped shards, alike, in one array; `key` is the first one's."""
        first = self._look(places[0], key, self._mapped(places[0][0]))
        copied = np.empty((len(places), *first.shape), first.dtype)
        if 0 < first.nbytes < LARGE:
            numbers, which = np.unique(places.files, return_inverse=True)
            maps = [np.frombuffer(self._mapped(number), np.uint8) for number in numbers.tolist()]
            rows = copied.reshape(len(places), -1).view(np.uint8)
            Rows(maps, which, places.starts, first.nbytes).copy(0, len(places), rows)
        else:
            for row, place in zip(copied, places, strict=True):
                row[...] = self._look(place, key, self._mapped(place[0]))
        return copied

    def _mapped(self, number: int) -> memoryview:
        """The bytes of a file, which is whole now."""
        found = self._maps.get(number) or self._maps.keep(number, self._map(number))
        check_whole(self._contents, self.shards[number], found.file)
        return found.bytes

    def _map(self, number: int) -> _Map:
        assert isinstance(self._contents.folder, LocalFolder)
        file = map_file(self._contents, self.shards[number], Local(self._contents.folder))
        return _Map(file, file.data.data)

    def _read(self, places: Places, keys: Sequence[str]) -> list[Array]:
        """Arrays of bytes that are read for them."""
        folder = self._contents.folder
        assert isinstance(folder, RemoteFolder)
        for number in {file for file, _ in places.specs}:
            self._check(self.shards[number])
        ranges = [(self.shards[file].file, start, start + (spec.bytes or 0)) for file, start, spec in places]
        try:
            found = read_ranges(folder, ranges)
        except FileNotFoundError as error:
            raise changed(self._contents) or error from None
        return [
            self._array(place, key, content, begin)
            for place, key, (content, begin) in zip(places, keys, found, strict=True)
        ]

    def _check(self, shard: Shard) -> None:
        """Whether the shard is there, and whole, as far as the folder tells."""
        length = self._contents.length(shard)
        if length is None:
            raise missing(self._contents, shard)
        check_length(self._contents, shard, length)

    def _array(self, place: Place, key: str, content: bytes, begin: int) -> Array:
        file, _, spec = place
        if len(content) < begin + (spec.bytes or 0):
            raise changed(self._contents) or DamagedShardError(
                f"{self._path(file)} ends within the tensor `{key:.200}`: it was truncated."
            )
        try:
            return np.ndarray(spec.shape, spec.numpy, content, begin)
        except (ValueError, OverflowError) as error:
            raise self._no_array(place, key, error) from None

    def _no_array(self, place: Place, key: str, error: Exception) -> InvalidTensorError:
        return InvalidTensorError(f"{self._path(place[0])}: tensor `{key:.200}`: {error}")

    def _path(self, file: int) -> str:
        return f"{self._contents.folder.location}/{self.shards[file].file}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what other processes read again."""
        return Store, (self._contents,)


class _Map(NamedTuple):
    file: Mapped
    # An array of a memoryview takes less time to make than one of an array.
    bytes: memoryview


def _listed(keys: Iterable[str], method: str) -> list[str]:
    if isinstance(keys, str):
        raise TypeError(f"keys is the string {keys!r:.200}, expected a list of keys: {method}([{keys!r:.200}])")
    return list(keys)


def _said(place: Place) -> str:
    spec = place[2]
    return f"{spec.dtype} {list(spec.shape)}"
