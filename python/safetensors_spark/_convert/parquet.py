"""Parquet: a file, or a folder of files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors_spark._convert.arrow_rows import ragged_in, writable
from safetensors_spark._convert.source import Part, Source, files_in, reading, split

_ROWS = 4096


@dataclass(frozen=True)
class _Groups(Part):
    """Row groups of files."""

    groups: tuple[tuple[Path, int], ...]
    columns: tuple[str, ...] | None

    def batches(self) -> Iterator[Any]:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        for path in dict.fromkeys(path for path, _ in self.groups):
            with reading(path), pq.ParquetFile(path) as file:
                groups = [group for other, group in self.groups if other == path]
                columns = None if self.columns is None else list(self.columns)
                yield from map(writable, file.iter_batches(_ROWS, groups, columns))


@dataclass(frozen=True)
class ParquetSource(Source):
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None

    def parts(self, count: int) -> Sequence[Part]:
        import pyarrow.parquet as pq

        groups: list[tuple[Path, int]] = []
        for path in self.files:
            with reading(path):
                groups += [(path, group) for group in range(pq.read_metadata(path).num_row_groups)]
        return [_Groups(tuple(groups[start:end]), self.columns) for start, end in split(len(groups), count)]

    def ragged(self) -> Collection[str]:
        import pyarrow.parquet as pq

        for path in self.files:
            with reading(path), pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_ROWS, columns=None if self.columns is None else list(self.columns)):
                    return ragged_in(writable(batch))
        return ()


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    files = files_in(path, ".parquet", ".parq")
    return ParquetSource(tuple(files), columns) if files else None
