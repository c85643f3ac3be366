"""Sorted entries of an index, as Arrow's tables: made of headers, kept in files, and merged as streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from safetensors_spark._errors import DuplicateKeyError
from safetensors_spark._files.header import Header
from safetensors_spark._files.index import COLUMNS

# Entries that are sorted in memory, and entries of a run that are merged at a time.
_IN_MEMORY = 1 << 20
_AT_ONCE = 1 << 14

_ORDER = [("tensor_key", "ascending"), ("file_name", "ascending")]


def index_schema() -> Any:
    """Arrow's schema of an index. No cell is empty."""
    import pyarrow as pa  # type: ignore[import-untyped]

    dims = pa.list_(pa.field("element", pa.int32(), nullable=False))
    types = (pa.string(), pa.string(), dims, pa.string(), pa.int64(), pa.int64())
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in zip(COLUMNS, types, strict=True)])


def entries_of(file: str, header: Header) -> Any:
    """The tensors of a shard, in the order of their bytes."""
    import pyarrow as pa

    schema, tensors = index_schema(), header.tensors
    kinds = [pa.array([kind[which] for kind in tensors.kinds], schema.field(name).type)
             for which, name in ((1, "shape"), (0, "dtype"))]  # fmt: skip
    shapes, dtypes = (kind.take(pa.array(tensors.kind_of)) for kind in kinds)
    starts, ends = (header.data_start + offsets.astype(np.int64) for offsets in (tensors.begins, tensors.ends))
    files = pa.repeat(pa.scalar(file, pa.string()), len(tensors))
    columns = [pa.array(tensors.names, pa.string()), files, shapes, dtypes, pa.array(starts), pa.array(ends)]
    return pa.Table.from_arrays(columns, schema=schema)


class IndexRuns:
    """Runs of sorted entries. All but the last are in files, so that memory does not grow with the number of keys."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="safetensors-spark-index-")
        self._tables: list[Any] = []
        self._waiting = 0
        self._files: list[Any] = []
        self.entries = 0
        self.key_bytes = 0

    def add(self, table: Any) -> None:
        self._tables.append(table)
        self._waiting += len(table)
        self.entries += len(table)
        self.key_bytes += table.column("tensor_key").nbytes
        if self._waiting >= _IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        import pyarrow as pa

        path = Path(self._folder.name) / f"{len(self._files)}.arrow"
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, index_schema()) as writer:
            writer.write_table(self._sorted(), max_chunksize=_AT_ONCE)
        self._files.append(pa.memory_map(str(path)))
        self._tables, self._waiting = [], 0

    def _sorted(self) -> Any:
        import pyarrow as pa

        return pa.concat_tables([index_schema().empty_table(), *self._tables]).sort_by(_ORDER)

    def sources(self) -> list[Iterator[Any]]:
        """The entries of each run."""
        import pyarrow as pa

        runs = [_batches(pa.ipc.open_file(file)) for file in self._files]
        return [*runs, iter(self._sorted().to_batches(max_chunksize=_AT_ONCE))]

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._folder.cleanup()


def _batches(run: Any) -> Iterator[Any]:
    return (run.get_batch(number) for number in range(run.num_record_batches))


def merged(sources: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """The entries of sorted sources as sorted tables: whole tables at a time, of what no source can still precede."""
    import pyarrow as pa

    heads: list[tuple[Any, Iterator[Any]]] = [
        (head, source) for source in sources if (head := _next(source)) is not None
    ]
    while heads:
        # The keys up to the least of the sources' last ones. Equal keys may follow, in files of later names.
        bound = min(_last_key(head) for head, _ in heads)
        ready, rest = [], []
        for head, source in heads:
            count = _count_up_to(head, bound) if len(heads) > 1 else len(head)
            ready.append(head.slice(0, count))
            left = head.slice(count) if count < len(head) else _next(source)
            while left is not None and len(heads) > 1 and (count := _count_up_to(left, bound)):
                ready.append(left.slice(0, count))
                left = left.slice(count) if count < len(left) else _next(source)
            if left is not None:
                rest.append((left, source))
        yield pa.concat_tables(ready).sort_by(_ORDER)
        heads = rest


def _next(source: Iterator[Any]) -> Any:
    """The next table of the source that is not empty."""
    import pyarrow as pa

    for batch in source:
        if len(batch):
            return pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    return None


def _last_key(table: Any) -> bytes:
    return bytes(table.column("tensor_key")[-1].as_buffer())


def _count_up_to(table: Any, bound: bytes) -> int:
    """How many leading entries have keys up to the bound, as UTF-8 bytes."""
    keys = table.column("tensor_key")
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        if bytes(keys[middle].as_buffer()) <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def unique(tables: Iterable[Any]) -> Iterator[Any]:
    """The same tables. Raises `DuplicateKeyError` if a key is in two entries that follow each other."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    last = None
    for table in tables:
        with_last = table if last is None else pa.concat_tables([last, table])
        keys = with_last.column("tensor_key").combine_chunks()
        same = pc.index(pc.equal(keys.slice(1), keys.slice(0, max(len(keys) - 1, 0))), True).as_py()
        if same >= 0:
            key, files = keys[same].as_py(), with_last.column("file_name")
            raise duplicate(key, files[same].as_py(), files[same + 1].as_py())
        last = table.slice(len(table) - 1)
        yield table


def duplicate(key: str, one: str, other: str) -> DuplicateKeyError:
    """What to say of a key in two shards."""
    return DuplicateKeyError(
        f"The key `{key}` is in two shards, {one} and {other}, but an index takes each key once. Make keys unique, or "
        "write without `generate_index`. Nothing was changed."
    )
