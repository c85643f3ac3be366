"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._arrow_expression import in_arrow
from safetensors_spark.pipeline._expression import all_of, columns_of, conjuncts
from safetensors_spark.pipeline._formats.columns import batches_of, records_of
from safetensors_spark.pipeline._formats.reading import Bad, explained
from safetensors_spark.pipeline._formats.selecting import record_filter
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._paths import files_of, is_local
from safetensors_spark.pipeline._source import FilePart

# Rows that become objects at a time, and their bytes in the file.
_READ_ROWS, _READ_BYTES = 2048, 16 << 20
# Of a row group.
_GROUP_ROWS, _GROUP_BYTES = 131_072, 64 << 20


def read(path: str, load: Load, bad: Bad, part: FilePart | None = None) -> Iterator[Any]:
    """The records of a file, or of some row groups. What the filter tells of a row group's statistics is not read."""
    with explained(path):
        for batch in _batches(path, load, bad, part):
            yield from records_of(batch, load.columns)


def row_groups(path: str) -> list[int]:
    """How many rows each row group of a file has."""
    with explained(path):
        groups = sorted(_fragment(path).row_groups, key=lambda group: group.id)
        return [group.num_rows for group in groups]


def _fragment(path: str, part: FilePart | None = None) -> Any:
    # Its import takes as long as that of the rest, and writers do without.
    import pyarrow.dataset as dataset  # type: ignore[import-untyped]

    files, place = files_of(path)
    # Else Arrow keeps all column chunks that it will read, of the whole file: that saves requests of a store alone.
    options = dataset.ParquetFragmentScanOptions(pre_buffer=not is_local(files))
    of_files = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    fragment = of_files.make_fragment(place, dataset_filesystem(files))
    # `row_groups` of make_fragment is a set, which has another order.
    return fragment if part is None else fragment.subset(row_group_ids=list(range(part.start, part.end)))


def _batches(path: str, load: Load, bad: Bad, part: FilePart | None) -> Iterator[pa.RecordBatch]:
    fragment = _fragment(path, part)
    schema = fragment.physical_schema
    if not schema.names and not fragment.count_rows():
        # Of a shard without records, nobody knows the columns.
        return
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
        batch_size=_rows_at_once(fragment),
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
    )
    keeps = None if rest is None else record_filter(rest, bad)
    for batch in scanner.to_batches():
        if keeps is not None:
            # Null is not true.
            mask = [bool(keeps(record)) for record in records_of(batch, None)]
            batch = batch.filter(pa.array(mask, pa.bool_()))
        yield batch


def _rows_at_once(fragment: Any) -> int:
    """How many rows have some megabytes, by the row group in which rows are the longest."""
    groups = [(group.num_rows, group.total_byte_size) for group in fragment.row_groups]
    longest = max((size // rows for rows, size in groups if rows), default=1)
    return int(max(1, min(_READ_ROWS, _READ_BYTES // max(1, longest))))


def dataset_filesystem(files: Any) -> Any:
    """Arrow's file system for this machine, which maps files; fsspec's for others."""
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem  # type: ignore[import-untyped]

    return LocalFileSystem() if is_local(files) else PyFileSystem(FSSpecHandler(files))


def _check(path: str, schema: pa.Schema, load: Load) -> None:
    named = [*(load.columns or ()), *sorted(columns_of(load.filter) if load.filter is not None else ())]
    for name in load.columns or ():
        if name not in schema.names:
            raise PipelineError(f"{without_secrets(path)} has no column `{name}`; it has {', '.join(schema.names)}")
    for name in dict.fromkeys(named if load.columns is not None else schema.names):
        if schema.names.count(name) > 1:
            raise PipelineError(f"{without_secrets(path)} has several columns `{name}`. Rename them, or load others.")


def write(rows: Iterable[Any], file: BinaryIO, name: str, options: dict[str, Any]) -> int:
    """Write records, or lists of records. Returns how many there are."""
    schema, batches = batches_of(rows, name, options.get("schema"), "write_parquet")
    count = 0
    group: list[pa.RecordBatch] = []
    with _writer(file, schema, name) as writer:
        for batch in batches:
            count += batch.num_rows
            group.append(batch)
            if sum(one.num_rows for one in group) >= _GROUP_ROWS or sum(one.nbytes for one in group) >= _GROUP_BYTES:
                _write_group(writer, group, name)
        if group:
            _write_group(writer, group, name)
    return count


def _writer(file: BinaryIO, schema: pa.Schema, name: str) -> Any:
    with _fits(name):
        return parquet.ParquetWriter(file, schema)


@contextmanager
def _fits(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeError) as error:
        raise PipelineError(
            f"{without_secrets(name)} cannot be Parquet: {error}. Leave the column out, or give write_parquet a "
            "`schema` that Parquet has."
        ) from None


def _write_group(writer: Any, group: list[pa.RecordBatch], name: str) -> None:
    table = pa.Table.from_batches(group)
    with _fits(name):
        writer.write_table(table, row_group_size=table.num_rows)
    group.clear()
