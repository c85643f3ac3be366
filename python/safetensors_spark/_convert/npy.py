"""NumPy: an array in a file, or a folder with one file for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._convert.source import Part, Rows, Source, files_in, reading, split
from safetensors_spark._errors import InvalidWriteError

# Of all columns at a time.
_BYTES = 64 << 20


@dataclass(frozen=True)
class _Rows(Part):
    # The file or the folder, for errors.
    path: Path
    files: tuple[Path, ...]
    start: int
    end: int

    def rows(self) -> Iterator[Rows]:
        arrays = {path.stem: _mapped(path) for path in self.files}
        step = max(1, _BYTES * (self.end - self.start) // max(self.size, 1))
        for start in range(self.start, self.end, step):
            batch = {name: array[start : min(start + step, self.end)] for name, array in arrays.items()}
            yield Rows(self.path, start, batch)


def _mapped(path: Path) -> Any:
    with reading(path):
        return np.lib.format.open_memmap(path, mode="r")


@dataclass(frozen=True)
class NpySource(Source):
    path: Path
    files: tuple[Path, ...]

    def parts(self, count: int) -> Sequence[Part]:
        arrays = {path: _mapped(path) for path in self.files}
        for path, array in arrays.items():
            if not array.shape:
                raise InvalidWriteError(
                    f"{path} is a single value, expected an array with a row in its first dimension."
                )
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) > 1:
            told = ", ".join(f"{path.name} {len(array)}" for path, array in arrays.items())
            raise InvalidWriteError(f"The arrays have different numbers of rows: {told}. Convert them one by one.")
        length = lengths.pop()
        of_row = sum(array.nbytes // max(length, 1) for array in arrays.values())
        return [_Rows((end - start) * of_row, self.path, self.files, start, end) for start, end in split(length, count)]


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    of_column: dict[str, Path] = {}
    for one in files_in(path, ".npy"):
        other = of_column.setdefault(one.stem, one)
        if other != one and (columns is None or one.stem in columns):
            raise InvalidWriteError(
                f"{other} and {one} are both the column `{one.stem}`. Rename one of them, or convert each folder alone."
            )
    if not of_column:
        return None
    for name in columns or ():
        if name not in of_column:
            raise InvalidWriteError(f"{path} has no column `{name}`; there are {', '.join(of_column)}.")
    return NpySource(path, tuple(one for name, one in of_column.items() if columns is None or name in columns))
