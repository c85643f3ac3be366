"""The pipeline as users write it: a source, followed by operations. Nothing runs here."""

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
    """A lazy sequence of rows, and operations on them. Each method returns a new dataset; a backend executes it.

    Rows are in shards: one for each file or item of the source. Row operations process a shard as a stream, so it
    never needs more memory than a few rows. Rows keep their order.
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
            path: a folder, if there is a pattern; else a pattern, such as `in/**/*.jsonl.gz` or `s3://b/{a,b}/*`.
                `**` also matches no folder.
            pattern: the pattern of files in the folder.
            empty_glob_ok: do not raise if no file matches.

        Raises `FileNotFoundError` when the dataset is planned and no file matches.
        """
        return Dataset(FileSource(os.fspath(path), pattern, empty_glob_ok))

    @staticmethod
    def from_list(items: Sequence[T]) -> Dataset[T]:
        """Rows of a list: each is a separate shard, so that they are processed in parallel."""
        return Dataset(ItemSource(tuple(items)))

    @staticmethod
    def from_iterable(items: Iterable[T]) -> Dataset[T]:
        """Like `from_list`: all items are consumed now."""
        return Dataset(ItemSource(tuple(items)))

    @staticmethod
    def from_dataset(dataset: Any) -> Dataset[dict[str, Any]]:
        """The samples of a safetensors dataset that `open_dataset` has opened: each file is a shard."""
        return Dataset(DatasetSource(dataset))._load("safetensors", None)

    @staticmethod
    def from_dataframe(frame: Any) -> Dataset[dict[str, Any]]:
        """The rows of a Spark DataFrame as records, structs as dictionaries: each partition is a shard.

        Only the Spark backend executes it, on executors, where the rows are. Each run computes the frame again.
        Planning runs all Spark stages except the last one, to know the partitions.

        Raises `PipelineError` for a frame of Spark Connect.
        """
        if not hasattr(frame, "columns"):
            raise TypeError(f"from_dataframe takes a DataFrame of Spark, not {type(frame).__name__}")
        return Dataset(FrameSource(frame))

    def _then(self, operation: Operation) -> Dataset[Any]:
        return Dataset(self.source, (*self.operations, operation))

    def map(self, function: Callable[[T], R]) -> Dataset[R]:
        """The result of the function for each row."""
        return self._then(Map(_function("map", function)))

    def flat_map(self, function: Callable[[T], Iterable[R]]) -> Dataset[R]:
        """All items of the iterables that the function returns for each row, such as `load_jsonl` for a path."""
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
        """Lists of `size` rows, in order; the last one of a shard may have fewer."""
        return self._then(Window(whole("window", size, 1)))

    def window_by(self, folder_fn: Callable[[S, T], tuple[bool, S]], initial_state: S = None) -> Dataset[list[T]]:  # type: ignore[assignment]
        """Lists of rows, as a function decides.

        Args:
            folder_fn: gets a state and a row, and returns whether the row belongs to the list, and the next state. If
                it does not, the row starts the next list, and the function is called with the initial state.
            initial_state: the initial state; each list gets a copy.
        """
        return self._then(WindowBy(_function("window_by", folder_fn), initial_state))

    def map_shard(self, function: Callable[[Iterator[T], ShardInfo], Iterable[R]]) -> Dataset[R]:
        """The results of a function that gets all rows of a shard as an iterator, and the shard's number."""
        return self._then(MapShard(_function("map_shard", function)))

    def load_file(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """The records of the files that the rows name, in the format of their suffix."""
        return self._load("file", columns)

    def load_jsonl(self, columns: Sequence[str] | None = None) -> Dataset[dict[str, Any]]:
        """A record for each line of JSON files, which may be compressed: `.gz`, `.zst`, `.xz` or `.bz2`.

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
            columns: the columns to read.
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
        """A file for each shard, with a line of JSON for each row. The suffix `.gz` or `.zst` compresses it.

        Args:
            pattern: the path, with `{shard}` and `{total}`: `out/data-{shard:05d}-of-{total:05d}.jsonl.gz`. Or a
                function of the shard's number and their total.
            skip_existing: skip a shard whose file exists, whatever its content.

        The resulting rows are the paths. A file appears when it is complete.
        """
        return self._write("jsonl", pattern, skip_existing)

    def write_parquet(self, pattern: Pattern, schema: Any = None, *, skip_existing: bool = False) -> Dataset[str]:
        """A Parquet file for each shard. Rows are records, or lists of records, as `window` makes them.

        Args:
            pattern: as for `write_jsonl`.
            schema: a pyarrow schema. By default it is inferred from a shard's first records, some thousands.
            skip_existing: as for `write_jsonl`.
        """
        return self._write("parquet", pattern, skip_existing, schema=schema)

    def write_vortex(self, pattern: Pattern, schema: Any = None, *, skip_existing: bool = False) -> Dataset[str]:
        """A Vortex file for each shard, like `write_parquet`."""
        return self._write("vortex", pattern, skip_existing, schema=schema)

    write_vortx = write_vortex

    def write_safetensors(self, path: str | os.PathLike[str], **options: Any) -> Dataset[str]:
        """One safetensors dataset with all rows, in order: tasks write its shards, and one commit makes it visible.

        Args:
            path: a directory, or an fsspec URL.
            options: options of `safetensors_spark.dataset.DatasetWriter`, with other defaults. `batch_size` is `auto`
                unless there is a `name_col`. `mode` is `error`, so that a changed pipeline does not add its
                rows to those that it wrote before; with `overwrite` it replaces them.

        The resulting row is the path. Running the same pipeline again writes nothing, as long as the dataset has its
        shards, whose names identify their rows: so rows are appended once, even without the records of earlier runs.
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
        """The same rows in the same order, in `num_shards` shards of about the same size. None changes nothing.

        Directly after a load, Parquet files are divided by their row groups and uncompressed lines by their
        bytes, without an exchange.
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
        """The results of a reducer for all rows with the same key.

        Args:
            key: a function that returns the key of a row: None, a number, text, bytes, or a tuple of these. Keys are
                compared by Python's equality. It may be called more than once for a row.
            reducer: gets the key and an iterator of its rows. It returns a row, or an iterator of rows.
            sort_by: orders the rows of a key. By default, and for equal values, they are in the order of the source.
            num_output_shards: by default as many as before. Keys are assigned by hash, and sorted within a shard.
            combiner: gets a key and some of its rows, and returns fewer rows that are equivalent for the reducer.

        Rows that exceed the memory limit spill to disk.
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
        """One row: a reducer computes a value from each shard's rows, and another (or the same) a value from these.

        A shard without rows has no value. If no shard has one, the reducer of values gets no values.
        """
        local = self._then(MapShard(only(_function("local_reducer", local_reducer))))
        return local._then(Gather(global_reducer or local_reducer))

    def count(self) -> Dataset[int]:
        """One row: the number of rows."""
        return self.reduce(count_rows, sum)

    def sorted_merge_join(
        self,
        right: Dataset[R],
        left_key: Callable[[T], Any],
        right_key: Callable[[R], Any],
        combiner: Callable[[T, R | None], Any] | None = None,
        how: Literal["inner", "left"] = "inner",
    ) -> Dataset[Any]:
        """Join rows with equal keys. Shards with the same number must have the same keys, sorted.

        The results of `group_by` and `deduplicate` with the same `num_output_shards` and keys fulfil this.

        Args:
            right: the other dataset, with as many shards.
            combiner: combines a row of each; by default the fields of both records, the right ones taking precedence.
            how: `left` keeps rows without a match on the right, for which the combiner gets None.

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
