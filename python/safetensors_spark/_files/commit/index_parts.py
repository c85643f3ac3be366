"""Files of a dataset's index: those that are there, and the one that a commit adds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from typing import Any, BinaryIO

from safetensors_spark._errors import InvalidIndexError
from safetensors_spark._files.commit.index_runs import duplicate, index_schema
from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.format_version import INDEX_VERSION
from safetensors_spark._files.index import COLUMNS, TensorIndex
from safetensors_spark._files.manifest import IndexPart

# Many readers read at least a whole row group and the footer, which has this many bytes for each row group. The sum is
# least if both have about the same length.
_FOOTER_BYTES = 460
_OPEN_PAGES = 32 << 10

# A page has few rows, so that a look-up decodes few others.
_PAGE_BYTES = 4 << 10
_ENTRY_BYTES = 10

_RATIO = 4
# Writing this many entries again takes about as long as opening a file.
_SMALL_PART = 1 << 14


class OpenPart:
    """A part of the index that is there."""

    def __init__(self, target: Target, part: IndexPart) -> None:
        self.part = part
        self._source = target.folder.open(part.file)
        try:
            self._index = TensorIndex(target.folder, part.file, self._source)  # type: ignore[arg-type]
        except BaseException:
            self._source.close()
            raise
        self.entries = len(self._index)
        self.is_current = self._index.commit_id == part.commit_id

    def batches(self) -> Iterator[Any]:
        """All entries, sorted."""
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        try:
            self._source.seek(0)
            for batch in pq.ParquetFile(self._source).iter_batches(columns=list(COLUMNS)):
                yield pa.Table.from_batches([batch]).cast(index_schema())
        except (pa.ArrowException, OSError) as error:
            raise InvalidIndexError(self._index.path, str(error)) from None

    def check_absent(self, keys: Sequence[str], files: Sequence[str]) -> None:
        """Raise `DuplicateKeyError` if the part has one of these keys, which are sorted; `files` are their shards."""
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]
        import pyarrow.parquet as pq

        encoded = [key.encode() for key in keys]
        self._source.seek(0)
        file = pq.ParquetFile(self._source)
        for group in range(file.num_row_groups):
            low, high = _range(file.metadata.row_group(group), encoded)
            if low == high:
                continue
            found = file.read_row_group(group, columns=["tensor_key", "file_name"])
            matches = found.filter(
                pc.is_in(found.column("tensor_key"), value_set=pa.array(keys[low:high], pa.string()))
            )
            if len(matches):
                key = matches.column("tensor_key")[0].as_py()
                raise duplicate(key, matches.column("file_name")[0].as_py(), files[keys.index(key)])

    def close(self) -> None:
        self._index.close()
        self._source.close()


def _range(group: Any, keys: Sequence[bytes]) -> tuple[int, int]:
    """Which of the sorted keys the row group may have."""
    column = next(
        group.column(at) for at in range(group.num_columns) if group.column(at).path_in_schema == "tensor_key"
    )
    known = column.statistics
    # Parquet has no statistics for long keys.
    if known is None or not known.has_min_max:
        return 0, len(keys)
    least, greatest = (value.encode() if isinstance(value, str) else value for value in (known.min, known.max))
    low = bisect_left(keys, least)
    # What follows the greatest key at once.
    return low, max(low, bisect_left(keys, greatest + b"\0"))


def kept_parts(entries: Sequence[int], added: int) -> int:
    """How many leading parts stay: those that have several times as many entries as all behind them."""
    count, merged = len(entries), added
    while count and (entries[count - 1] < _SMALL_PART or entries[count - 1] < _RATIO * merged):
        merged += entries[count - 1]
        count -= 1
    return count


def write_part(file: BinaryIO, commit_id: str, tables: Iterable[Any], entries: int, key_bytes: int) -> None:
    """Write sorted entries, about as many as said, whose keys have about so many bytes together."""
    import pyarrow.parquet as pq

    metadata = {"safetensors.commit_id": commit_id, "safetensors.format_version": INDEX_VERSION}
    of_entry = _ENTRY_BYTES + key_bytes // max(entries, 1)
    rows = int((_OPEN_PAGES + sqrt(_FOOTER_BYTES * entries * of_entry)) / of_entry) + 1
    schema = index_schema().with_metadata(metadata)
    with pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=["file_name", "shape.list.element", "dtype"],
        # Statistics are useless for other columns.
        write_statistics=["tensor_key"],
        write_page_index=True,
        write_page_checksum=True,
        data_page_size=_PAGE_BYTES,
        write_batch_size=250,
    ) as writer:
        for table in _groups(tables, rows):
            writer.write_table(table.cast(schema), row_group_size=rows)


def _groups(tables: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same entries in tables of so many rows; the last one may have fewer."""
    import pyarrow as pa

    waiting: list[Any] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += len(table)
        if count >= rows:
            whole = pa.concat_tables(waiting)
            full = count - count % rows
            yield whole.slice(0, full)
            waiting, count = [whole.slice(full)], count - full
    if count:
        yield pa.concat_tables(waiting)
