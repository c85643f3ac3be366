"""Rows in any of the forms in which they are given, as Arrow tables, of which few are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import InvalidShardError
from safetensors_spark.publish._arrow_types import with_values

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

Rows: TypeAlias = "pd.DataFrame | pa.Table | pa.RecordBatch | Iterable[pd.DataFrame | pa.Table | pa.RecordBatch]"

# What becomes one row group.
_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20

# By names, since the oldest pyarrow has no such types.
_OF_VIEWS = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}


def tables(rows: Rows) -> Iterator[pa.Table]:
    """The rows, in tables of many rows. Raises `InvalidShardError` for what has no rows of columns."""
    whole = _table(rows)
    if whole is not None:
        if len(whole):
            yield whole
        return
    if isinstance(rows, str | bytes | dict) or not isinstance(rows, Iterable):
        raise _not_rows("the rows are", rows)
    parts: list[pa.Table] = []
    count = size = 0
    for part in rows:
        table = _table(part)
        if table is None:
            raise _not_rows("an item of the rows is", part)
        if not len(table):
            continue
        if parts and table.schema.names != parts[0].schema.names:
            raise InvalidShardError(
                f"a batch has the columns {', '.join(table.schema.names)}, and the ones before it "
                f"{', '.join(parts[0].schema.names)}. Give all batches the same columns."
            )
        parts.append(table)
        count += len(table)
        size += table.nbytes
        if count >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield _joined(parts)
            parts, count, size = [], 0, 0
    if parts:
        yield _joined(parts)


def _joined(parts: list[pa.Table]) -> pa.Table:
    """One table. Batches of pandas may have a column once as integers, and once as floats."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidShardError(f"batches have columns of different types: {error}") from None


def _table(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        try:
            return pa.Table.from_pandas(rows, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
            what = ". ".join(map(str, error.args))
            raise InvalidShardError(f"the DataFrame cannot become Arrow's columns: {what}") from None
    # A reader is an iterator, whose batches need not be in memory at once.
    if hasattr(rows, "__arrow_c_stream__") and not isinstance(rows, pa.RecordBatchReader):
        try:
            table = pa.RecordBatchReader.from_stream(rows).read_all()
            return table.cast(pa.schema([one.with_type(with_values(one.type, _plain)) for one in table.schema]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise InvalidShardError(f"the {type(rows).__name__} cannot become Arrow's columns: {error}") from None
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that Parquet and its readers know: those of views have no other use than in memory."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
    return _OF_VIEWS.get(str(kind), kind)


def _not_rows(what: str, value: object) -> InvalidShardError:
    return InvalidShardError(
        f"{what} a {type(value).__name__}, expected a DataFrame of pandas or polars, a table or record batch of "
        "Arrow, or an iterator of these."
    )
