"""The pipeline as its users write it: a source, and operations one after the other. Nothing runs here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Literal, TypeVar, overload

from safetensors_spark.dataset._arguments import whole
from safetensors_spark.pipeline._expression import Expr
from safetensors_spark.pipeline._operations import (
    Commit,
    Filter,
    FilterExpression,
    FlatMap,
    Gather,
    GroupBy,
    Join,
    Load,
    Map,
    MapShard,
    Operation,
    Reshard,
    Select,
    ShardInfo,
    TakePerShard,
    Window,
    WindowBy,
    Write,
)
from safetensors_spark.pipeline._paths import absolute
from safetensors_spark.pipeline._reductions import count_rows, first_of_each, keep_first, merged, only
from safetensors_spark.pipeline._source import DatasetSource, FileSource, FrameSource, ItemSource, Source

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")
S = TypeVar("S")

Pattern = str | Callable[[int, int], str]


class Dataset(Generic[T]):
    """Rows to be, and what is to be done with them. Each method returns a new dataset; a backend executes it.

    Rows are in shards: one for each file or item of the source. An operation of rows works on a shard from its first
    row to its last, so a shard never needs more memory than a few rows. Rows keep their order.
    """

    def __init__(self, source: Source, operations: tuple[Operation, ...] = ()) -> None:
        self.source = source
        self.operations = operations

    @staticmethod
    def from_files(
        path: str | os.PathLike[str], pattern: str | None = None, *, empty_glob_ok: bool = False
    ) -> Dataset[str]:
        """The paths of files, sorted: each is a shard of one row.

        Args:
            path: a folder, where there is a pattern; else a pattern, such as `in/**/*.jsonl.gz` or `s3://b/{a,b}/*`.
                `**` also means no folder at all.
            pattern: of files in the folder.
            empty_glob_ok: no file is no error.

        Raises `FileNotFoundError` when the dataset is planned and there is no such file.
        """
        return Dataset(FileSource(os.fspath(path), pattern, empty_glob_ok))

    @staticmethod
    def from_list(items: Sequence[T]) -> Dataset[T]:
        """Rows of a list: each is a shard of its own, so that they are worked on at the same time."""
        return Dataset(ItemSource(tuple(items)))

    @staticmethod
    def from_iterable(items: Iterable[T]) -> Dataset[T]:
        """As `from_list`: all items are taken now."""
        return Dataset(ItemSource(tuple(items)))

    @staticmethod
    def from_dataset(dataset: Any) -> Dataset[dict[str, Any]]:
        """The samples of a safetensors dataset that `open_dataset` has opened: those of a file are a shard."""
        return Dataset(DatasetSource(dataset))._load("safetensors", None)

    @staticmethod
    def from_dataframe(frame: Any) -> Dataset[dict[str, Any]]:
        """The rows of a Spark DataFrame as records, structs as dictionaries: those of a partition are a shard.

        The Spark backend alone executes it, on executors, where the rows are. Each run computes the frame again.
        Planning runs the stages of Spark that come before the last one, to know the partitions.

        Raises `PipelineError` for a frame of Spark Connect.
        """
        if not hasattr(frame, "columns"):
            raise TypeError(f"from_dataframe takes a DataFrame of Spark, not {type(frame).__name__}")
        return Dataset(FrameSource(frame))

    def _then(self, operation: Operation) -> Dataset[Any]:
        return Dataset(self.source, (*self.operations, operation))

    def map(self, function: Callable[[T], R]) -> Dataset[R]:
        """What the function returns of each row."""
        return self._then(Map(_function("map", function)))

    def flat_map(self, function: Callable[[T], Iterable[R]]) -> Dataset[R]:
        """All that the iterables have which the function returns of rows, as `load_jsonl` does of a path."""
        reader = getattr(function, "load_format", None)
        return self._then(Load(reader) if reader else FlatMap(_function("flat_map", function)))

    def filter(self, predicate: Callable[[T], Any] | Expr) -> Dataset[T]:
        """The rows for which a function, or an expression of a record's columns, is true."""
        if isinstance(predicate, Expr):
            return self._then(FilterExpression(predicate))
        return self._then(Filter(_function("filter", predicate)))

    def select(self, *columns: str) -> Dataset[dict[str, Any]]:
        """These columns of each record, which must have them."""
        for name in columns:
            if not isinstance(name, str):
                raise TypeError(f"select takes names of columns, not {type(name).__name__}")
        if not columns:
            raise ValueError("select takes the names of the columns to keep: there are none")
        return self._then(Select(tuple(dict.fromkeys(columns))))

    def take_per_shard(self, count: int) -> Dataset[T]:
        """The first rows of each shard; no more are read."""
        return self._then(TakePerShard(whole("take_per_shard", count, 0)))

    def window(self, size: int) -> Dataset[list[T]]:
        """Lists of so many rows, in order; the last one of a shard may have fewer."""
        return self._then(Window(whole("window", size, 1)))

    def window_by(self, folder_fn: Callable[[S, T], tuple[bool, S]], initial_state: S = None) -> Dataset[list[T]]:  # type: ignore[assignment]
        """Lists of rows, as a function decides.

        Args:
            folder_fn: gets a state and a row, and returns whether the row belongs to the list, and the next state. A
                row that does not begins the next list, for which the function is called with the initial state.
            initial_state: of each list, which gets a copy.
        """
        return self._then(WindowBy(_function("window_by", folder_fn), initial_state))

    def map_shard(self, function: Callable[[Iterator[T], ShardInfo], Iterable[R]]) -> Dataset[R]:
        """What the function makes of all rows of a shard, which it gets as an iterator, with the shard's number."""
        return self._then(MapShard(_function("map_shard", function)))

    def load_file(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """The records of the files whose paths the rows are, in the format that the suffix tells."""
        return self._load("file", columns)

    def load_jsonl(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """A record of each line of JSON files, which may be compressed: `.gz`, `.zst`, `.xz` or `.bz2`.

        Integers of more than 64 bits become floats.
        """
        return self._load("jsonl", columns)

    def load_parquet(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """The records of Parquet files."""
        return self._load("parquet", columns)

    def load_vortex(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """The records of Vortex files."""
        return self._load("vortex", columns)

    def load_safetensors(
        self, columns: Sequence[str] | None = None, *, rows: Literal["samples", "tensors", "files"] = "samples"
    ) -> Dataset[dict[str, Any]]:
        """Records of safetensors datasets, or of single files.

        Args:
            columns: those to read.
            rows: a record for each sample of a dataset, for each tensor (`key`, `tensor`), or for each file, which has
                all its tensors by name.
        """
        if rows not in ("samples", "tensors", "files"):
            raise ValueError(f"rows is {rows!r}, expected 'samples', 'tensors' or 'files'")
        return self._load("safetensors", columns, rows=rows)

    def _load(self, kind: str, columns: Sequence[str] | None, **options: Any) -> Dataset[Any]:
        if isinstance(columns, str):
            raise TypeError(f"columns is {columns!r}, expected a list of names")
        return self._then(Load(kind, None if columns is None else tuple(dict.fromkeys(columns)), options=options))

    def write_jsonl(self, pattern: Pattern, *, skip_existing: bool = False) -> Dataset[str]:
        """A file of each shard, with a line of JSON for each row. `.gz` or `.zst` at its end compresses it.

        Args:
            pattern: the path, with `{shard}` and `{total}`: `out/data-{shard:05d}-of-{total:05d}.jsonl.gz`. Or a
                function of the shard's number and their total.
            skip_existing: do not make a shard whose file exists, whatever it holds.

        The rows that are left are the paths. A file appears when it is whole.
        """
        return self._write("jsonl", pattern, skip_existing)

    def write_parquet(self, pattern: Pattern, schema: Any = None, *, skip_existing: bool = False) -> Dataset[str]:
        """A Parquet file of each shard. Rows are records, or lists of records, as `window` makes them.

        Args:
            pattern: as of `write_jsonl`.
            schema: of pyarrow. By default that of a shard's first records, some thousands.
            skip_existing: as of `write_jsonl`.
        """
        return self._write("parquet", pattern, skip_existing, schema=schema)

    def write_vortex(self, pattern: Pattern, schema: Any = None, *, skip_existing: bool = False) -> Dataset[str]:
        """A Vortex file of each shard, as `write_parquet`."""
        return self._write("vortex", pattern, skip_existing, schema=schema)

    write_vortx = write_vortex

    def write_safetensors(self, path: str | os.PathLike[str], **options: Any) -> Dataset[str]:
        """One safetensors dataset of all rows, in order: tasks write its shards, and one commit makes it visible.

        Args:
            path: a directory, or a URL of fsspec.
            options: those of `safetensors_spark.dataset.DatasetWriter`, with other defaults. `batch_size` is `auto`
                unless there is a `name_col`. `mode` is `error`, so that a pipeline that has changed does not add its
                rows to those that it has written before; with `overwrite` it replaces them.

        The row that is left is the path. Running the same pipeline again writes nothing, as long as the dataset has its
        shards, whose names tell which rows they have: so an append is one, also without the records of earlier runs.
        """
        if "batch_size" not in options and "name_col" not in options:
            options["batch_size"] = "auto"
        options.setdefault("mode", "error")
        place = absolute(os.fspath(path))
        return self._then(Write("safetensors", place, options=options))._then(Commit(place, options))

    def _write(self, kind: str, pattern: Pattern, skip_existing: bool, **options: Any) -> Dataset[str]:
        place = pattern if callable(pattern) else os.fspath(pattern)
        return self._then(Write(kind, place, skip_existing, options))

    def reshard(self, num_shards: int | None) -> Dataset[T]:
        """The same rows in the same order, in so many shards of about the same size. None changes nothing.

        Directly behind a load, Parquet files are divided by their row groups and lines that are not compressed by their
        bytes: nothing is exchanged.
        """
        if num_shards is None:
            return self
        return self._then(Reshard(whole("reshard", num_shards, 1)))

    @overload
    def group_by(
        self,
        key: Callable[[T], K],
        reducer: Callable[[K, Iterator[T]], Iterator[R]],
        sort_by: Callable[[T], Any] | None = None,
        num_output_shards: int | None = None,
        combiner: Callable[[K, Iterator[T]], Iterable[T]] | None = None,
    ) -> Dataset[R]: ...

    @overload
    def group_by(
        self,
        key: Callable[[T], K],
        reducer: Callable[[K, Iterator[T]], R],
        sort_by: Callable[[T], Any] | None = None,
        num_output_shards: int | None = None,
        combiner: Callable[[K, Iterator[T]], Iterable[T]] | None = None,
    ) -> Dataset[R]: ...

    def group_by(
        self,
        key: Callable[[T], Any],
        reducer: Callable[[Any, Iterator[T]], Any],
        sort_by: Callable[[T], Any] | None = None,
        num_output_shards: int | None = None,
        combiner: Callable[[Any, Iterator[T]], Iterable[T]] | None = None,
    ) -> Dataset[Any]:
        """What a reducer makes of all rows with the same key.

        Args:
            key: of a row: None, a number, text, bytes, or a tuple of these. Equal keys are equal as Python has it. It
                may be called more than once for a row.
            reducer: gets the key and an iterator of its rows. What it returns is a row; an iterator gives many.
            sort_by: orders the rows of a key. Else, and where it is equal, they are in the order of the source.
            num_output_shards: by default as many as before. Keys are in them by hash, and in order within them.
            combiner: gets a key and some of its rows, and returns fewer that mean the same to the reducer.

        Rows beyond what memory is for go to disk.
        """
        shards = None if num_output_shards is None else whole("num_output_shards", num_output_shards, 1)
        return self._then(GroupBy(_function("key", key), _function("reducer", reducer), sort_by, shards, combiner))

    def deduplicate(self, key: Callable[[T], Any], num_output_shards: int | None = None) -> Dataset[T]:
        """The first row of each key, in the order of keys."""
        shards = None if num_output_shards is None else whole("num_output_shards", num_output_shards, 1)
        return self._then(GroupBy(_function("key", key), keep_first, None, shards, first_of_each))

    def reduce(
        self, local_reducer: Callable[[Iterator[T]], R], global_reducer: Callable[[Iterator[R]], R] | None = None
    ) -> Dataset[R]:
        """One row: a reducer makes a value of each shard's rows, and another one, or the same, a value of these.

        A shard without rows has no value. Where no shard has one, the reducer of values gets none.
        """
        local = self._then(MapShard(only(_function("local_reducer", local_reducer))))
        return local._then(Gather(global_reducer or local_reducer))

    def count(self) -> Dataset[int]:
        """One row: how many rows there are."""
        return self.reduce(count_rows, sum)

    def sorted_merge_join(
        self,
        right: Dataset[R],
        left_key: Callable[[T], Any],
        right_key: Callable[[R], Any],
        combiner: Callable[[T, R | None], Any] | None = None,
        how: Literal["inner", "left"] = "inner",
    ) -> Dataset[Any]:
        """Rows of both with equal keys, where shards of the same number have the same keys, sorted.

        So are those of `group_by` and `deduplicate` with the same `num_output_shards` and the same keys.

        Args:
            right: as many shards.
            combiner: of a row of each; by default the fields of both records, those on the right replacing others.
            how: `left` also has rows without one on the right, for which the combiner gets None.

        Raises `PipelineError` for keys that are not sorted.
        """
        if how not in ("inner", "left"):
            raise ValueError(f"how is {how!r}, expected 'inner' or 'left'")
        return self._then(Join(right, left_key, right_key, combiner or merged, how == "left"))

    def __repr__(self) -> str:
        return " | ".join(map(str, (self.source, *self.operations)))


def _function(name: str, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"{name} takes a function, not {type(function).__name__}")
    return function
