"""Parquet: a file, or a folder of files, which may be in folders of partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from safetensors_spark._convert.arrow_rows import ragged_in, writable
from safetensors_spark._convert.parquet_partitions import Value, partition_values
from safetensors_spark._convert.source import Part, Rows, Source, files_in, reading, split, together

# Of a batch at most, of which the first rows and the row groups tell how many bytes rows have.
_ROWS = 65_536
_BYTES = 32 << 20
_FIRST_ROWS = 16


@dataclass(frozen=True)
class _File:
    """Attributes:
    values: what the folders that it is in say of all of its rows.
    """

    path: Path
    values: tuple[Value, ...]
    columns: tuple[str, ...] | None

    def rows(self, first: int = 0, groups: Sequence[int] | None = None) -> Iterator[Rows]:
        """The rows of these row groups, of which the first row has this number; or of all."""
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        with reading(self.path), pq.ParquetFile(self.path) as file:
            numbers = range(file.num_row_groups) if groups is None else groups
            names = self._names(file.schema_arrow.names)
            for batch in file.iter_batches(_rows_at_once(file, numbers, names), numbers, names):
                yield Rows(self.path, first, self._whole(batch))
                first += len(batch)

    def _names(self, names: Sequence[str]) -> Sequence[str]:
        """The columns to read: as in Spark, a column that folders name is not the file's."""
        named = {value.column.name for value in self.values}
        return [name for name in names if name not in named and (self.columns is None or name in self.columns)]

    def _whole(self, batch: Any) -> Any:
        import pyarrow as pa

        own = writable(batch)
        arrays = [*own.columns, *(value.repeated(len(batch)) for value in self.values)]
        return pa.RecordBatch.from_arrays(arrays, [*own.schema.names, *(value.column.name for value in self.values)])


def _rows_at_once(file: Any, groups: Sequence[int], names: Sequence[str]) -> int:
    """How many rows have few megabytes: those of images are large, and a dictionary may make small what is not."""
    about = [file.metadata.row_group(group) for group in groups]
    of_row: int = sum(one.total_byte_size for one in about) // max(1, sum(one.num_rows for one in about))
    for batch in islice(file.iter_batches(_FIRST_ROWS, groups[:1], names), 1):
        of_row = max(of_row, sum(map(_size, batch.columns)) // max(1, len(batch)))
    return max(1, min(_ROWS, _BYTES // max(1, of_row)))


def _size(column: Any) -> int:
    import pyarrow as pa

    dense = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    found: int = dense.nbytes
    return found


@dataclass(frozen=True)
class _Groups(Part):
    """Row groups of a file that follow each other.

    Attributes:
        first: the number of their first row in the file.
    """

    file: _File
    groups: tuple[int, ...]
    first: int

    def rows(self) -> Iterator[Rows]:
        return self.file.rows(self.first, self.groups)


@dataclass(frozen=True)
class ParquetSource(Source):
    files: tuple[_File, ...]

    def parts(self, count: int) -> Sequence[Part]:
        import pyarrow.parquet as pq

        groups: list[_Groups] = []
        for file in self.files:
            with reading(file.path):
                about, first = pq.read_metadata(file.path), 0
                for number in range(about.num_row_groups):
                    group = about.row_group(number)
                    groups.append(_Groups(group.total_byte_size, file, (number,), first))
                    first += group.num_rows
        return [together(list(_by_file(groups[start:end]))) for start, end in split(len(groups), count)]

    def ragged(self) -> Collection[str]:
        return next((ragged_in(rows.batch) for file in self.files for rows in file.rows()), ())


def _by_file(groups: Sequence[_Groups]) -> Iterator[_Groups]:
    for file, found in groupby(groups, lambda group: group.file):
        some = list(found)
        numbers = tuple(number for group in some for number in group.groups)
        yield _Groups(sum(group.size for group in some), file, numbers, some[0].first)


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    files = files_in(path, ".parquet", ".parq")
    if not files:
        return None
    values = partition_values(path, files, columns)
    return ParquetSource(tuple(_File(file, values[file], columns) for file in files))
