"""Folders that `datasets.Dataset.save_to_disk` has written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors_spark._convert.arrow_rows import ragged_in, writable
from safetensors_spark._convert.source import Part, Rows, Source, reading
from safetensors_spark._errors import InvalidWriteError


@dataclass(frozen=True)
class _Stream(Part):
    """A file of Arrow's stream format, mapped."""

    path: Path
    columns: tuple[str, ...] | None

    def rows(self) -> Iterator[Rows]:
        import pyarrow as pa  # type: ignore[import-untyped]

        with reading(self.path), pa.memory_map(str(self.path)) as file, pa.ipc.open_stream(file) as stream:
            first = 0
            for batch in stream:
                yield Rows(
                    self.path, first, writable(batch if self.columns is None else batch.select(list(self.columns)))
                )
                first += len(batch)


@dataclass(frozen=True)
class HuggingFaceSource(Source):
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None

    def parts(self, count: int) -> Sequence[Part]:
        return [_Stream(path.stat().st_size, path, self.columns) for path in self.files]

    def ragged(self) -> Collection[str]:
        return next((ragged_in(rows.batch) for part in self.parts(1) for rows in part.rows()), ())


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    if (splits := path / "dataset_dict.json").is_file():
        with reading(splits):
            names = json.loads(splits.read_text())["splits"]
        raise InvalidWriteError(f"{path} has several splits: {', '.join(names)}. Name the folder of one.")
    state = path / "state.json"
    if not state.is_file():
        return None
    with reading(state):
        found = json.loads(state.read_text())
        files = tuple(path / one["filename"] for one in found["_data_files"])
    if found.get("_indices_files"):
        raise InvalidWriteError(f"{path} has rows in another order: `flatten_indices()` before it is saved.")
    return HuggingFaceSource(files, columns)
