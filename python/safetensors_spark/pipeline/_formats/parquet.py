"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as dataset  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark._files.storage import checked_path
from safetensors_spark.pipeline._arrow_expression import in_arrow
from safetensors_spark.pipeline._expression import all_of, columns_of, conjuncts, of_rows
from safetensors_spark.pipeline._formats.reading import Bad, explained
from safetensors_spark.pipeline._operations import Load

# Rows that become objects at a time.
_READ_ROWS = 2048
# Rows that tell the types of a file's columns, and rows that become Arrow's at a time.
_FIRST_ROWS, _ROWS = 10_000, 1000
# Of a row group.
_GROUP_ROWS, _GROUP_BYTES = 131_072, 64 << 20


def read(path: str, load: Load, bad: Bad) -> Iterator[Any]:
    """The records of a file. What the filter tells of a row group's statistics is not read."""
    with explained(path):
        for batch in _batches(path, load):
            yield from _records(batch, load.columns)


def _batches(path: str, load: Load) -> Iterator[pa.RecordBatch]:
    from fsspec.core import url_to_fs

    files, place = url_to_fs(checked_path(path))
    fragment = dataset.ParquetFileFormat().make_fragment(place, dataset_filesystem(files))
    schema = fragment.physical_schema
    _check(path, schema, load)
    parts = conjuncts(load.filter) if load.filter is not None else []
    pushed = [found for part in parts if (found := in_arrow(part, schema)) is not None]
    rest = all_of([part for part in parts if in_arrow(part, schema) is None])
    needed = None
    if load.columns is not None:
        further = columns_of(rest) - set(load.columns) if rest is not None else set()
        needed = [*load.columns, *(name for name in schema.names if name in further)]
    condition = None
    for one in pushed:
        condition = one if condition is None else condition & one
    scanner = fragment.scanner(
        columns=needed,
        filter=condition,
        batch_size=_READ_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    )
    keeps = None if rest is None else of_rows(rest)
    for batch in scanner.to_batches():
        if keeps is not None:
            # Null is not true.
            mask = [bool(keeps(record)) for record in _records(batch, None)]
            batch = batch.filter(pa.array(mask, pa.bool_()))
        yield batch


def dataset_filesystem(files: Any) -> Any:
    """Arrow's file system for this machine, which maps files; fsspec's for others."""
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem

    protocols = (files.protocol,) if isinstance(files.protocol, str) else files.protocol
    return LocalFileSystem() if "file" in protocols else PyFileSystem(FSSpecHandler(files))


def _check(path: str, schema: pa.Schema, load: Load) -> None:
    named = [*(load.columns or ()), *sorted(columns_of(load.filter) if load.filter is not None else ())]
    for name in load.columns or ():
        if name not in schema.names:
            raise PipelineError(f"{without_secrets(path)} has no column `{name}`; it has {', '.join(schema.names)}")
    for name in dict.fromkeys(named if load.columns is not None else schema.names):
        if schema.names.count(name) > 1:
            raise PipelineError(f"{without_secrets(path)} has several columns `{name}`. Rename them, or load others.")


def _records(batch: pa.RecordBatch, columns: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    names = batch.schema.names if columns is None else columns
    values = [batch.column(name).to_pylist() for name in names]
    if not values:
        return ({} for _ in range(batch.num_rows))
    return (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def write(rows: Iterable[Any], file: BinaryIO, name: str, options: dict[str, Any]) -> int:
    """Write records, or lists of records. Returns how many there are."""
    iterator = _flat(rows)
    first = list(islice(iterator, _FIRST_ROWS))
    schema = options.get("schema")
    if schema is None:
        schema = _schema(name, first)
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        group: list[pa.RecordBatch] = []
        iterator = chain(first, iterator)
        del first
        while records := list(islice(iterator, _ROWS)):
            group.append(_batch(name, schema, records, count))
            count += len(records)
            if sum(one.num_rows for one in group) >= _GROUP_ROWS or sum(one.nbytes for one in group) >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group), row_group_size=_GROUP_ROWS * 2)
                group.clear()
        if group:
            writer.write_table(pa.Table.from_batches(group), row_group_size=_GROUP_ROWS * 2)
    return count


def _flat(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        if isinstance(row, list):
            yield from row
        else:
            yield row


def _schema(name: str, records: list[Any]) -> pa.Schema:
    names = _names(name, records)
    try:
        return pa.schema([(one, pa.array([row.get(one) for row in records]).type) for one in names])
    except (pa.ArrowException, TypeError, OverflowError) as error:
        column = next(one for one in names if _fails(one, records))
        raise PipelineError(
            f"{without_secrets(name)}: column `{column}` has values of several types, or of none that Parquet knows: "
            f"{error}. Give write_parquet a `schema`, or make the values alike."
        ) from None


def _fails(column: str, records: list[Any]) -> bool:
    try:
        pa.array([row.get(column) for row in records])
    except (pa.ArrowException, TypeError, OverflowError):
        return True
    return False


def _names(name: str, records: list[Any]) -> list[str]:
    for row in records:
        if not isinstance(row, dict):
            raise PipelineError(
                f"{without_secrets(name)}: a row is a {type(row).__name__}, but columns need dictionaries. Make one in "
                "a `map` before."
            )
    return list(dict.fromkeys(key for row in records for key in row))


def _batch(name: str, schema: pa.Schema, records: list[Any], before: int) -> pa.RecordBatch:
    for one in _names(name, records):
        if one not in schema.names:
            raise PipelineError(
                f"{without_secrets(name)}: a row has the column `{one}`, which "
                f"{'the schema' if before == 0 else 'no row before'} has: {', '.join(schema.names)}. Give "
                "write_parquet a `schema` with it, or `select` the columns to write."
            )
    arrays = []
    for field in schema:
        try:
            arrays.append(pa.array([row.get(field.name) for row in records], field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise PipelineError(
                f"{without_secrets(name)}: column `{field.name}` is {field.type}, which a value in rows {before} to "
                f"{before + len(records) - 1} of the shard is not: {error}. Give write_parquet a `schema`, or make the "
                "values alike."
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
