"""Whether two Parquet files have the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

_ROWS = 1 << 16
_INTEGERS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def same_rows(one: Path, other: BinaryIO, but: Collection[str]) -> bool:
    """Whether the files have the same rows in the same order, whatever the columns `but` have.

    What is no Parquet file has other rows.
    """
    try:
        with pq.ParquetFile(one) as first, pq.ParquetFile(other) as second:
            fields = [[field for field in file.schema_arrow if field.name not in but] for file in (first, second)]
            if fields[0] != fields[1] or first.metadata.num_rows != second.metadata.num_rows:
                return False
            names = [field.name for field in fields[0]]
            blocks = zip_longest(_blocks(first), _blocks(second))
            return all(_bits(a.select(names)).equals(_bits(b.select(names))) for a, b in blocks)
    except pa.ArrowInvalid:
        return False


def _blocks(file: pq.ParquetFile) -> Iterator[pa.Table]:
    """The rows in blocks of one length, wherever row groups end."""
    schema = file.schema_arrow.remove_metadata()
    rest = schema.empty_table()
    for batch in file.iter_batches(_ROWS):
        rest = pa.concat_tables([rest, pa.Table.from_batches([batch]).replace_schema_metadata(None)])
        while len(rest) >= _ROWS:
            yield rest.slice(0, _ROWS)
            rest = rest.slice(_ROWS)
    yield rest


def _bits(table: pa.Table) -> pa.Table:
    """The rows with integers of the same bits for floats, as a NaN is not equal to itself."""
    columns = []
    for column in table.columns:
        kind = _integers(column.type)
        columns.append(
            column if kind == column.type else pa.chunked_array([one.view(kind) for one in column.chunks], kind)
        )
    return pa.table(columns, names=table.column_names)


def _integers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_integers(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_integers(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(_integers(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _integers(one.type), one.nullable) for one in kind])
    return _INTEGERS.get(kind, kind)
