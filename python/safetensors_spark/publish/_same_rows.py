"""Whether two Parquet files have the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from safetensors_spark.publish._arrow_types import with_values

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
    rest = pa.table({})
    for batch in file.iter_batches(_ROWS):
        table = pa.Table.from_batches([batch]).replace_schema_metadata(None)
        rest = pa.concat_tables([rest, table]) if len(rest) else table
        while len(rest) >= _ROWS:
            yield rest.slice(0, _ROWS)
            rest = rest.slice(_ROWS)
    if len(rest):
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
    return with_values(kind, lambda value: _INTEGERS.get(value, value))
