"""Tables of rows joined to windows of some size, and tables written to files of some size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.pipeline._whole_file import whole_file


def windows(tables: Iterable[pa.Table], window_bytes: int) -> Iterator[pa.Table]:
    """The same rows, in tables of about so many bytes, which their content alone decides."""
    pending: list[pa.Table] = []
    size = 0
    for table in tables:
        pending.append(table)
        size += table.nbytes
        if size >= window_bytes:
            yield pa.concat_tables(pending)
            pending, size = [], 0
    if pending:
        yield pa.concat_tables(pending)


def in_parquet(kind: pa.DataType) -> pa.DataType:
    """The type of a file's column for values of a type: lists of some length are lists.

    Before release 26, Arrow does not read lists of a fixed length again if one of them is null.
    """
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([one.with_type(in_parquet(one.type)) for one in kind.fields])
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(in_parquet(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(in_parquet(kind.value_type)))
    return kind


class ParquetFiles:
    """Files in a folder, which end where they have enough bytes of Arrow. Each appears when it is whole.

    Used as a context: after an error, the file that is not whole is not left.
    """

    def __init__(self, folder: str, prefix: str, file_bytes: int) -> None:
        self._target, self._prefix, self._limit = open_target(folder), prefix, file_bytes
        self._stack = ExitStack()
        self._writer: Any = None
        self._file: BinaryIO | None = None
        self._rows = self._size = 0
        self.files: list[dict[str, Any]] = []

    def __enter__(self) -> ParquetFiles:
        return self

    def write(self, table: pa.Table) -> None:
        fields = [one.with_type(in_parquet(one.type)) for one in table.schema]
        table = table.cast(pa.schema(fields, table.schema.metadata))
        # Not all of a table goes to one file, however large it is.
        step = max(1, table.num_rows * self._limit // max(1, table.nbytes))
        for begin in range(0, table.num_rows, step):
            self._write(table.slice(begin, step))

    def _write(self, table: pa.Table) -> None:
        if self._writer is None:
            name = f"{self._prefix}-{len(self.files):03d}.parquet"
            self._file = self._stack.enter_context(whole_file(self._target, name, durable=True))
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._file, table.schema, compression="zstd"))
            self.files.append({"file": name, "rows": 0, "bytes": 0})
        self._writer.write_table(table)
        self._rows += table.num_rows
        self._size += table.nbytes
        if self._size >= self._limit:
            self._end()

    def _end(self) -> None:
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self.files[-1] |= {"rows": self._rows, "bytes": self._file.tell()}
            stack, self._stack = self._stack, ExitStack()
            self._writer, self._file, self._rows, self._size = None, None, 0, 0
            stack.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)
