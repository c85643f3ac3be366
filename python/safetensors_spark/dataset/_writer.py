"""Writes datasets without Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from types import TracebackType
from typing import Any, Literal

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.commit.columns import differ, remedy, shown
from safetensors_spark._files.commit.commit import CommitPlan, DatasetCommit
from safetensors_spark._files.commit.existing import SaveMode, check_existing
from safetensors_spark._files.commit.target import open_target
from safetensors_spark._files.commit.written import STAGING, WriteRecord
from safetensors_spark._files.manifest import Column, Manifest
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark.dataset._write.batch_shards import BatchShards, Tail, check_tensors
from safetensors_spark.dataset._write.batches import check_names, chunks_of, columns_of
from safetensors_spark.dataset._write.bucket_shards import BucketShards
from safetensors_spark.dataset._write.chunk import Chunk
from safetensors_spark.dataset._write.key_shards import Duplicates, KeyShards
from safetensors_spark.dataset._write.keyed_rows import keyed_rows, keys_of, of_tensors
from safetensors_spark.dataset._write.numbers import Rounding
from safetensors_spark.dataset._write.options import options_of
from safetensors_spark.dataset._write.shards import Shards


class DatasetWriter:
    """Writes rows to a dataset. All become visible at once, when the block ends without an exception.

        with DatasetWriter("points", batch_size=1024) as writer:
            for batch in batches:
                writer.write(batch)

    With many processes, each has a writer. Pass what each `finish` returns to `commit` in one process:

        record = writer.finish()                                    # in each worker; nothing is visible yet
        DatasetWriter("points", batch_size=1024).commit(records)    # all or nothing

    The files equal those that Spark writes for the same rows, and both may write to one dataset at the same time.

    Args:
        path: a local directory, or an fsspec URL. A store that cannot create files exclusively takes one
            write
            at a time.
        batch_size: rows in a shard, in which each column is one tensor; `auto` for as many as fill
            `target_shard_size_mb`.
        name_col: the column of text or whole numbers that names tensors: each row and column becomes one.
        mode: `append`, `overwrite`, or `error`, which fails if there is a dataset.
        ragged: columns whose rows differ in their first dimension. An append uses those of the dataset.
        tail_strategy: what to do with rows that fill no batch: `write`, `drop` or `pad` them.
        kv_separator: with `name_col` and several columns, the text between key and column in a tensor's name.
        duplicates_strategy: with `name_col`, what to do with a key that occurs twice in a shard: `fail`, or keep the
            last row (`lastWin`).
        target_shard_size_mb: with `name_col` or `batch_size="auto"`, the size of a shard in megabytes, from 50 to 1000.
        generate_index: write an index of all tensors. With `name_col`, a key in two shards is then an error.
        key_buckets: with `name_col` of text and one column, how many buckets to divide the keys into, as Spark does:
            each shard has keys of one bucket, sorted. A writer then holds rows of four shards. An append uses the
            dataset's number.
        metadata: `__metadata__` of every shard.
        dtype: the dtype of numbers: one name for all columns, or a dictionary by column. An integer dtype truncates
            floats; a number that a dtype cannot hold is an error, except for F8, which saturates as PyTorch does.
        shapes: the shape of one row, by column, with as many elements as the rows have.
        rounding: how numbers become F16 or BF16: `truncate`, or `nearest_even` as NumPy and PyTorch do.
        partition: the number in the names of this writer's shards.
        write_id: 16 hex digits that begin the UUIDs in the names of this writer's shards: a writer whose rows may
            already be committed finds them in the manifest by these digits.
        storage_options: for fsspec.

    Raises `InvalidWriteError` for options that contradict each other or the existing dataset.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch_size: int | Literal["auto"] | None = None,
        name_col: str | None = None,
        mode: SaveMode = "append",
        ragged: Sequence[str] = (),
        tail_strategy: Tail = "write",
        kv_separator: str = "__",
        duplicates_strategy: Duplicates = "fail",
        target_shard_size_mb: int = 300,
        generate_index: bool = False,
        key_buckets: int | None = None,
        metadata: Mapping[str, str] | None = None,
        dtype: str | Mapping[str, str] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        rounding: Rounding = "truncate",
        partition: int = 0,
        write_id: str | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        given = {
            "batch_size": batch_size,
            "name_col": name_col,
            "ragged": ragged,
            "tail_strategy": tail_strategy,
            "kv_separator": kv_separator,
            "duplicates_strategy": duplicates_strategy,
            "target_shard_size_mb": target_shard_size_mb,
            "generate_index": generate_index,
            "metadata": metadata,
            "dtype": dtype,
            "shapes": shapes,
            "rounding": rounding,
            "key_buckets": key_buckets,
        }
        self._options, recorded = options_of(mode, given)
        self._of_columns = self._options.columns
        self._target = open_target(path, storage_options)
        self._plan = CommitPlan(mode, self._options.dataset_mode, recorded, self._options.generate_index)
        if write_id is not None and not re.fullmatch("[0-9a-f]{16}", write_id):
            raise InvalidWriteError(f"`write_id` is {write_id!r}, expected 16 hex digits.")
        self._partition, self._write_id = partition, write_id
        self._guard = RLock()
        old = check_existing(self._target, mode, self._options.dataset_mode, ())
        self._existing = {one.name: one for one in (old.columns if old and old.shards and mode == "append" else ())}
        self._buckets = self._options.buckets_beside(self._target.location, old if mode == "append" else None)
        self._begin()

    def _begin(self) -> None:
        options = self._options
        self._columns: dict[str, Column] = {}
        self._is_broken = self._has_rows = self._is_finished = False
        # What was written of the rows, until a commit has it.
        self._record: WriteRecord | None = None
        # What batches without rows tell, as long as there are no others.
        self._of_no_rows: tuple[Column, ...] = ()
        self._shards = Shards(self._target, self._partition, options.metadata, self._write_id)
        rows = None if options.batch_size == "auto" else options.batch_size
        size = options.target_shard_size_mb * 1_000_000
        self._by_batch = BatchShards(self._shards, rows, size, options.tail_strategy)
        by_key = KeyShards(self._shards, size, options.kv_separator, options.duplicates_strategy)
        self._by_key = by_key if self._buckets is None else BucketShards(by_key, self._buckets)

    def write(self, batch: Any) -> None:
        """Write some rows. They are not visible before a commit.

        Args:
            batch: a dictionary of columns, each an array, a tensor of PyTorch, a `Ragged`, or a list of numbers,
                arrays, strings,
                bytes, dates or times; or a DataFrame of pandas, or a Table or RecordBatch of Arrow.

        Threads may write at the same time, in any order.

        Raises `InvalidWriteError` for rows that differ in dtype or shape from earlier rows, or are not tensors.
        """
        columns, convert = columns_of(batch)
        if not columns:
            return
        with self._guard:
            self._check_open()
            self._write(columns, convert)

    def _write(self, columns: dict[str, Any], convert: Any) -> None:
        self._of_columns.check_names([name for name in columns if name != self._options.name_col])
        if all(_is_empty(values) for values in columns.values()):
            self._write_nothing(columns, convert)
        elif self._options.name_col is None:
            chunks = [self._stored(chunk, None) for chunk in chunks_of(columns, convert, self._ragged_of(columns))]
            self._check([chunk.column for chunk in chunks])
            order = list(self._columns)
            with self._whole():
                self._by_batch.write(sorted(chunks, key=lambda chunk: order.index(chunk.column.name)))
        else:
            self._write_keyed(columns, convert, self._options.name_col)

    def _write_nothing(self, columns: dict[str, Any], convert: Any) -> None:
        """Keep what columns without rows tell; lists tell nothing."""
        columns.pop(self._options.name_col or "", None)
        ragged = self._ragged_of(columns)
        chunks = [convert(name, values, name in ragged) for name, values in columns.items()]
        if self._options.name_col is not None:
            chunks = [of_tensors(chunk) for chunk in chunks]
        if not self._columns and all(chunk.is_typed for chunk in chunks):
            self._of_no_rows = tuple(self._stored(chunk, None).column for chunk in chunks)
            self._check_first(self._of_no_rows)

    def _ragged_of(self, columns: Mapping[str, Any]) -> Collection[str]:
        for name in self._options.ragged:
            if name not in columns:
                raise InvalidWriteError(f"`ragged` names `{name}`, but the columns to write are: {', '.join(columns)}.")
        return {*self._options.ragged, *(one.name for one in self._existing.values() if one.kind == "ragged")}

    def _stored(self, chunk: Chunk, other: Column | None) -> Chunk:
        """The rows as the options ask for them. `other` is the column of other rows."""
        name = chunk.column.name
        return self._of_columns.apply(chunk, self._columns.get(name) or self._existing.get(name) or other)

    def _write_keyed(self, columns: dict[str, Any], convert: Any, name_col: str) -> None:
        if name_col not in columns:
            raise InvalidWriteError(f"`name_col` names `{name_col}`, but the columns are: {', '.join(columns)}.")
        keys = keys_of(name_col, columns.pop(name_col), in_buckets=self._buckets is not None)
        if self._buckets is not None and len(columns) > 1:
            raise InvalidWriteError(
                f"Rows cannot be written in {self._buckets} buckets of keys: there are several columns, "
                f"{', '.join(columns)}, so that the names of the tensors are not the keys. Write each column to a "
                "dataset of its own."
            )
        rows = {name: keyed_rows(name, values, convert, self._stored) for name, values in columns.items()}
        for name, of_column in rows.items():
            if len(of_column) != len(keys):
                raise InvalidWriteError(f"Column `{name}` has {len(of_column)} rows, but there are {len(keys)} keys.")
        self._check([of_column.columns[0] for of_column in rows.values()])
        for of_column in rows.values():
            self._summarize(of_column.columns)
        with self._whole():
            self._by_key.write(keys, [rows[name] for name in self._columns])

    def _check(self, columns: Sequence[Column]) -> None:
        """Hold columns against those of the rows before, and of the dataset."""
        if not columns:
            raise InvalidWriteError("There is no column to write.")
        if not self._columns:
            self._check_first(columns)
            self._columns = {column.name: column for column in columns}
        here, before = sorted(column.name for column in columns), sorted(self._columns)
        if here != before:
            raise InvalidWriteError(
                f"A batch has the columns {', '.join(here)}, but the one before had {', '.join(before)}."
            )
        if self._plan.mode == "key_value":
            return
        for column in columns:
            self._check_like(column, self._columns[column.name], "rows before have")
            self._check_like(column, self._existing.get(column.name), "the rows of the dataset have")
        for column in columns:
            known = self._columns[column.name]
            if known.shape is None:
                # Lists of lists are of another type than lists of numbers.
                kind = column.type if column.shape else known.type
                self._columns[column.name] = replace(known, shape=column.shape, type=kind)

    def _check_like(self, column: Column, known: Column | None, have: str) -> None:
        if known is not None and differ(known, column):
            raise InvalidWriteError(
                f"Column `{column.name}`: {shown(column)}, but {have} {shown(known)}. "
                f"{remedy(column, known, column.name in self._existing)}."
            )

    def _check_first(self, columns: Sequence[Column]) -> None:
        check_names([column.name for column in columns], self._plan.mode)
        check_existing(self._target, self._plan.save_mode, self._plan.mode, columns)
        if self._plan.mode == "batch":
            check_tensors(columns, self._options.metadata)

    def _summarize(self, columns: Sequence[Column]) -> None:
        """Tensors by key may differ: what they do not agree in is None."""
        known = self._columns[columns[0].name]
        for column in columns:
            if known.dtype not in (None, column.dtype) or known.shape not in (None, column.shape):
                dtype = known.dtype if known.dtype == column.dtype else None
                known = Column(
                    known.name, dtype, known.shape if known.shape == column.shape else None, "fixed", known.type
                )
        self._columns[known.name] = known

    def finish(self) -> WriteRecord:
        """Write the last rows, and return the record of all rows for `commit`. The writer accepts no more rows.

        Nothing is visible yet. Rows that are not committed are deleted by a write after a week.
        """
        with self._guard:
            self._check_open()
            with self._whole():
                if self._options.name_col is None:
                    self._by_batch.finish()
                else:
                    self._by_key.finish()
            columns = tuple(self._columns.values()) or self._of_no_rows
            self._record = WriteRecord(self._shards.folder, self._plan.mode, columns, tuple(self._shards.records))
            self._is_finished = True
            return self._record

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is interrupted here has taken some of the rows."""
        self._is_broken = self._has_rows = True
        yield
        self._is_broken = False

    def _check_open(self) -> None:
        if self._is_finished:
            raise InvalidWriteError(
                "This writer has finished, and no commit would have further rows. Make another DatasetWriter for them."
            )
        if self._is_broken:
            raise InvalidWriteError(
                "An earlier call has failed when a part of its rows was written. Call `abort`, and write all rows "
                "again."
            )

    def __reduce__(self) -> Any:
        raise TypeError("a DatasetWriter stays in its process: make one in each, and send what `finish` returns")

    def abort(self) -> None:
        """Delete the uncommitted rows of this writer, which can then start again."""
        with self._guard:
            self._shards.discard()
            self._begin()

    def commit(self, records: Iterable[WriteRecord] | WriteRecord) -> Manifest:
        """Add the rows of all records to the dataset, in the order of the records: all or nothing.

        Waits while another write commits. Returns the manifest of the dataset. This writer then accepts no more rows.

        Raises:
            InvalidWriteError: the dtypes or shapes of the records differ, or differ from the dataset; or
                this writer has rows that are in no record.
            DuplicateKeyError: a key would occur twice in a dataset with an index.
            LostLockError: this process paused for minutes, and another write took the lock.
        """
        found = [records] if isinstance(records, WriteRecord) else list(records)
        for one in found:
            if not isinstance(one, WriteRecord):
                raise InvalidWriteError(
                    f"`commit` was given {one!r:.100}, expected what each writer's `finish` returned, or "
                    "`WriteRecord.from_json` of its text."
                )
        with self._guard:
            if self._has_rows and not self._is_finished:
                raise InvalidWriteError(
                    "This writer has rows of its own, which no record has yet. Commit what its `finish` returns too, "
                    "or `abort` it first."
                )
            manifest = DatasetCommit(self._target, self._plan, found).run()
            self._is_finished = True
            if self._record in found:
                self._record = None
            return manifest

    def discard(self, record: WriteRecord) -> None:
        """Delete the rows of a record that will not be committed."""
        self._target.delete_folder(record.folder)
        self._target.delete_empty(STAGING)

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self.abort()
            elif not self._is_finished:
                self._commit_own()
            elif self._record and self._record.shards:
                raise InvalidWriteError(
                    "`finish` was called in the block, and what it returned is not committed. A block commits its rows "
                    "when it ends: leave out `finish`, or take the writer without `with`."
                )
        finally:
            self._is_finished = True

    def _commit_own(self) -> Manifest:
        try:
            return self.commit([self.finish()])
        except BaseException:
            self.abort()
            raise


def _is_empty(values: Any) -> bool:
    return getattr(values, "ndim", 1) > 0 and isinstance(values, Sized) and len(values) == 0
