"""Records as Arrow's columns, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._formats.exact import exact_array
from safetensors_spark.pipeline._frames import weight

# Records that tell the types of a file's columns, and records that become columns at a time, with their bytes.
_FIRST, _FIRST_BYTES = 10_000, 64 << 20
_AT_ONCE, _BYTES_AT_ONCE = 1000, 16 << 20
# What Arrow raises for values that a column cannot have.
_UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)


def records_of(batch: pa.RecordBatch, columns: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    """The records of a batch, with these columns or all."""
    names = batch.schema.names if columns is None else columns
    values = [batch.column(name).to_pylist() for name in names]
    if not values:
        return ({} for _ in range(batch.num_rows))
    return (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def batches_of(
    rows: Iterable[Any], name: str, schema: pa.Schema | None, method: str
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Records, or lists of records, as batches of one schema: the given one, or that of the first records.

    Args:
        name: of the file, for errors.
        method: what the user called, for errors.
    """
    place = without_secrets(name)
    records = _flat(rows)
    first = next(some_at_a_time(records, _FIRST, _FIRST_BYTES), [])
    if schema is not None and not isinstance(schema, pa.Schema):
        raise TypeError(f"{method}: `schema` is a {type(schema).__name__}, expected a pyarrow.Schema")
    found = schema if schema is not None else _schema(place, first, method)
    if first and not found.names:
        raise PipelineError(
            f"{place}: records have no columns, so a file of columns has none of them. Add one in a `map`."
        )
    return found, _batches(place, found, chain(first, records), method, schema is not None)


def _flat(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        if isinstance(row, list):
            yield from row
        else:
            yield row


def some_at_a_time(records: Iterator[Any], count: int, size: int) -> Iterator[list[Any]]:
    """Lists of so many records, or of so many bytes of text and the like, if that is less."""
    some: list[Any] = []
    weighs = 0
    for record in records:
        some.append(record)
        if isinstance(record, dict):
            for value in record.values():
                kind = type(value)
                if kind is str or kind is bytes:
                    weighs += len(value)
                elif kind is not int and kind is not float:
                    weighs += weight(value)
        if weighs >= size or len(some) == count:
            yield some
            some, weighs = [], 0
    if some:
        yield some


def _batches(
    place: str, schema: pa.Schema, records: Iterator[Any], method: str, is_given: bool
) -> Iterator[pa.RecordBatch]:
    count = 0
    for some in some_at_a_time(records, _AT_ONCE, _BYTES_AT_ONCE):
        _check(place, some)
        further = set().union(*some).difference(schema.names)
        if further:
            one = next(name for name in _names(some) if name in further)
            raise PipelineError(
                f"{place}: a record has the column `{one}`, which "
                f"{'the schema' if is_given else 'no record before'} has: {', '.join(schema.names)}. Give {method} "
                "a `schema` with it, or `select` the columns to write."
            )
        yield pa.RecordBatch.from_arrays([_array(place, field, some, count, method) for field in schema], schema=schema)
        count += len(some)


def _array(place: str, field: pa.Field, records: list[Any], before: int, method: str) -> pa.Array:
    values = [record.get(field.name) for record in records]
    if _has_struct(field.type):
        for value in values:
            # Arrow leaves out what its type does not have.
            if path := _unknown(value, field.type):
                raise PipelineError(
                    f"{place}: column `{field.name}` has the field `{path}` in the records {before} to "
                    f"{before + len(records) - 1} of the shard, which its type {field.type} does not have. Give "
                    f"{method} a `schema` with it, or leave it out in a `map` before."
                )
    try:
        return exact_array(values, field.type)
    except _UNFIT as error:
        last = before + len(records) - 1
        raise PipelineError(
            f"{place}: column `{field.name}` is {field.type}, which a value in the records {before} to {last} of the "
            f"shard is not: {error}. Give {method} a `schema`, or make the values alike."
        ) from None


def _has_struct(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(kind):
        return True
    if types.is_map(kind):
        return _has_struct(kind.item_type)
    return (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)) and _has_struct(
        kind.value_type
    )


def _unknown(value: Any, kind: pa.DataType) -> str:
    """The path of a field that the type does not have; empty if it has all."""
    if value is None or not _has_struct(kind):
        return ""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return ""
        for name, one in value.items():
            place = kind.get_field_index(name)
            if place < 0:
                return str(name)
            if path := _unknown(one, kind.field(place).type):
                return f"{name}.{path}"
        return ""
    inner = kind.item_type if pa.types.is_map(kind) else kind.value_type
    if pa.types.is_map(kind):
        value = value.values() if isinstance(value, dict) else (one for _, one in value)
    return next((path for one in value if (path := _unknown(one, inner))), "")


def _schema(place: str, records: list[Any], method: str) -> pa.Schema:
    fields = []
    _check(place, records)
    for name in _names(records):
        try:
            fields.append((name, pa.array([record.get(name) for record in records]).type))
        except _UNFIT as error:
            raise PipelineError(
                f"{place}: column `{name}` has values of several types, or of none that Arrow knows: {error}. Give "
                f"{method} a `schema`, or make the values alike."
            ) from None
    return pa.schema(fields)


def _check(place: str, records: list[Any]) -> None:
    for record in records:
        if not isinstance(record, dict):
            raise PipelineError(
                f"{place}: a row is a {type(record).__name__}, but columns need dictionaries. Make one in a `map` "
                "before."
            )
    for name in _names(records):
        if not isinstance(name, str):
            raise PipelineError(
                f"{place}: a record has the column {name!r}, of type {type(name).__name__}, but names of columns are "
                "text. Name it so in a `map` before."
            )


def _names(records: list[Any]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))
