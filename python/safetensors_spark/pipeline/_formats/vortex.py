"""Vortex files."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO

from safetensors_spark._errors import PipelineError
from safetensors_spark._extras import require
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._expression import all_of, columns_of, conjuncts
from safetensors_spark.pipeline._formats.columns import batches_of, records_of
from safetensors_spark.pipeline._formats.reading import Bad, explained
from safetensors_spark.pipeline._formats.selecting import record_filter
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._paths import files_of
from safetensors_spark.pipeline._scratch import scratch
from safetensors_spark.pipeline._source import FilePart

_READ_ROWS = 2048


def read(path: str, load: Load, bad: Bad, part: FilePart | None = None) -> Iterator[Any]:
    """The records of a file, or of some of its splits. What Vortex's scan computes of the filter is left to it."""
    require("vortex", ("vortex",))
    import vortex as vx

    with explained(path, RuntimeError), _local(path) as local:
        from safetensors_spark.pipeline._vortex_expression import in_vortex

        file = vx.open(str(local))
        schema = file.to_arrow().schema
        names = schema.names
        for name in load.columns or ():
            if name not in names:
                raise PipelineError(f"{without_secrets(path)} has no column `{name}`; it has {', '.join(names)}")
        parts = conjuncts(load.filter) if load.filter is not None else []
        pushed = [found for part in parts if (found := in_vortex(part, schema)) is not None]
        rest = all_of([part for part in parts if in_vortex(part, schema) is None])
        needed = None
        if load.columns is not None:
            further = columns_of(rest) if rest is not None else set()
            needed = [*load.columns, *(name for name in names if name in further - set(load.columns))]
        keeps = None if rest is None else record_filter(rest, bad)
        condition = reduce(operator.and_, pushed) if pushed else None
        for batch in _batches(file, needed, condition, part):
            records = records_of(batch, None)
            if keeps is not None:
                records = filter(keeps, records)
            if load.columns is None or keeps is None:
                yield from records
            else:
                yield from ({name: record[name] for name in load.columns} for record in records)


def _batches(file: Any, needed: list[str] | None, condition: Any, part: FilePart | None) -> Any:
    if part is None:
        return file.to_arrow(needed, expr=condition, batch_size=_READ_ROWS)
    splits = file.splits()
    rows = (splits[part.start][0], splits[part.end - 1][1])
    return file.to_repeated_scan(needed, expr=condition, batch_size=_READ_ROWS).execute(row_range=rows).to_arrow()


def row_groups(path: str) -> list[int]:
    """How many rows each split of a file has."""
    require("vortex", ("vortex",))
    import vortex as vx

    with explained(path, RuntimeError), _local(path) as local:
        return [end - begin for begin, end in vx.open(str(local)).splits()]


def write(rows: Iterable[Any], file: BinaryIO, name: str, options: dict[str, Any]) -> int:
    """Write records, or lists of records. Returns how many there are."""
    require("vortex", ("vortex",))
    import pyarrow as pa  # type: ignore[import-untyped]
    import vortex as vx

    schema, batches = batches_of(rows, name, options.get("schema"), "write_vortex")
    count = 0

    def counted() -> Iterator[Any]:
        nonlocal count
        for batch in batches:
            count += batch.num_rows
            yield batch

    # It writes to names alone.
    with scratch() as folder:
        whole = Path(folder) / "whole.vortex"
        vx.io.write(pa.RecordBatchReader.from_batches(schema, counted()), str(whole))
        with whole.open("rb") as content:
            while part := content.read(1 << 20):
                file.write(part)
    return count


@contextmanager
def _local(path: str) -> Iterator[Path]:
    """The file on this machine: a copy of one that is elsewhere."""
    files, place = files_of(path)
    if "file" in ((files.protocol,) if isinstance(files.protocol, str) else files.protocol):
        yield Path(place)
        return
    with scratch() as folder:
        copy = Path(folder) / "copy.vortex"
        files.get_file(place, str(copy))
        yield copy
