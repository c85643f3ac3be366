"""What the end of a stage writes of a shard."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import chain, groupby, islice
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark.dataset import DatasetWriter, WriteRecord
from safetensors_spark.pipeline._operations import Write
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._source import version_of_file
from safetensors_spark.pipeline._whole_file import split, whole_file

# Records that become columns at a time.
_RECORDS = 256


def write_shard(
    rows: Iterator[Any], write: Write, place: str, shard: int, write_ids: tuple[str, ...], footer: Footer
) -> Any:
    """Write the rows of a shard. Returns the path; of a dataset, what its commit needs."""
    if write.format == "safetensors":
        writer = DatasetWriter(place, partition=shard, write_id=write_ids[0], **write.options)
        return _write_dataset_shard(rows, writer, footer)
    target, name = split(place)
    if write.skip_existing and target.status(name) is not None:
        footer.version, footer.is_skipped = version_of_file(place), True
        return place
    with whole_file(target, name, durable=True) as file:
        # Each format needs a library of its own.
        module: Any = import_module(f"safetensors_spark.pipeline._formats.{write.format}")
        footer.rows = module.write(rows, file, name, dict(write.options))
        footer.bytes = file.tell()
    footer.version = version_of_file(place)
    return place


def _write_dataset_shard(rows: Iterator[Any], writer: DatasetWriter, footer: Footer) -> WriteRecord:
    try:
        for count, columns in _batches(rows):
            footer.rows += count
            writer.write(columns)
        record = writer.finish()
    except BaseException:
        writer.abort()
        raise
    footer.bytes = sum(one.bytes or 0 for one in record.shards)
    return record


def _batches(rows: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Tables of Arrow as they are; records, or lists of records, as columns; and how many they are."""
    for is_table, some in groupby(rows, lambda row: hasattr(row, "num_rows")):
        if is_table:
            yield from ((table.num_rows, table) for table in some)
        else:
            yield from _columns(some)


def _columns(rows: Iterator[Any]) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    flat = chain.from_iterable(row if isinstance(row, list) else [row] for row in rows)
    while records := list(islice(flat, _RECORDS)):
        first = records[0]
        for record in records:
            if not isinstance(record, dict):
                raise PipelineError(
                    f"write_safetensors: a row is a {type(record).__name__}, but columns need dictionaries. Make one "
                    "in a `map` before."
                )
            if record.keys() != first.keys():
                raise PipelineError(
                    f"write_safetensors: a record has the columns {', '.join(map(str, record))}, but another one has "
                    f"{', '.join(map(str, first))}. Make them alike, or `select` the columns to write."
                )
        yield len(records), {name: [record[name] for record in records] for name in first}
