"""The files of a dataset's index: where each tensor lies, sorted by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import RawIOBase
from typing import Any

from safetensors_spark._errors import InvalidIndexError
from safetensors_spark._extras import require
from safetensors_spark._files.format_version import INDEX_MAJORS, check_readable
from safetensors_spark._files.storage import Folder

COLUMNS = ("tensor_key", "file_name", "shape", "dtype", "data_start", "data_end")

_COMMIT = b"safetensors.commit_id"
_VERSION = b"safetensors.format_version"


@dataclass(frozen=True)
class IndexEntry:
    """Where a tensor lies: `start` and `end` are bytes of the file."""

    key: str
    file: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    end: int


class TensorIndex:
    """An open file of an index. Of another commit than the manifest says, it counts for nothing."""

    def __init__(self, folder: Folder, name: str, file: RawIOBase | None = None) -> None:
        """Raises `InvalidIndexError`, `IncompatibleVersionError`, or `MissingExtraError` if pyarrow is missing.

        `file` may be one that has no more than the footer, for those who do not iterate.
        """
        require("cli", ("pyarrow",))
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        self.path = f"{folder.location}/{name}"
        source = file or folder.open(name)
        try:
            self._file = pq.ParquetFile(source)
            names = self._file.schema_arrow.names
        # Some damage is an `OSError` to pyarrow, and names that are not UTF-8 are a `ValueError`.
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidIndexError(self.path, str(error)) from None
        self._check_version()
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise InvalidIndexError(self.path, f"it has no column {', '.join(missing)}")

    def _check_version(self) -> None:
        # The first indexes named no version.
        version = (self.metadata.metadata or {}).get(_VERSION, b"1.0").decode(errors="replace")
        try:
            check_readable(version, self.path, INDEX_MAJORS)
        except ValueError as error:
            raise InvalidIndexError(self.path, str(error)) from None

    @property
    def metadata(self) -> Any:
        """The footer, as pyarrow has it."""
        return self._file.metadata

    @property
    def commit_id(self) -> str | None:
        return (self.metadata.metadata or {}).get(_COMMIT, b"").decode(errors="replace") or None

    def __len__(self) -> int:
        return int(self.metadata.num_rows)

    def __iter__(self) -> Iterator[IndexEntry]:
        """The entries in order, some thousands in memory at a time."""
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(columns=list(COLUMNS)):
                columns = (column.to_pylist() for column in columns_of(pa.Table.from_batches([batch])))
                for key, file, shape, dtype, start, end in zip(*columns, strict=True):
                    yield IndexEntry(key, file, tuple(shape), dtype, start, end)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidIndexError(self.path, str(error)) from None

    def close(self) -> None:
        self._file.close(force=True)


def columns_of(table: Any) -> list[Any]:
    """The columns of some entries, as Arrow's arrays of their types. Raises ValueError, or Arrow's errors."""
    import pyarrow as pa

    types = (pa.string(), pa.string(), pa.list_(pa.int64()), pa.string(), pa.int64(), pa.int64())
    columns = [table.column(name).combine_chunks().cast(kind) for name, kind in zip(COLUMNS, types, strict=True)]
    for column in columns:
        # Strings may have other bytes than UTF-8.
        column.validate(full=True)
        if column.null_count or (pa.types.is_list(column.type) and column.flatten().null_count):
            raise ValueError("it has empty cells")
    return columns
