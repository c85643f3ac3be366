"""NumPy: an array in a file, or a folder with one file for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._convert.source import Part, Source, files_in, reading, split
from safetensors_spark._errors import InvalidWriteError

# Of all columns at a time.
_BYTES = 64 << 20


@dataclass(frozen=True)
class _Rows(Part):
    files: tuple[Path, ...]
    start: int
    end: int

    def batches(self) -> Iterator[Any]:
        arrays = {path.stem: _mapped(path) for path in self.files}
        of_row = sum(array.nbytes // max(len(array), 1) for array in arrays.values())
        step = max(1, _BYTES // max(of_row, 1))
        for start in range(self.start, self.end, step):
            yield {name: array[start : min(start + step, self.end)] for name, array in arrays.items()}


def _mapped(path: Path) -> Any:
    with reading(path):
        return np.lib.format.open_memmap(path, mode="r")


@dataclass(frozen=True)
class NpySource(Source):
    files: tuple[Path, ...]

    def parts(self, count: int) -> Sequence[Part]:
        shapes = {path: _mapped(path).shape for path in self.files}
        for path, shape in shapes.items():
            if not shape:
                raise InvalidWriteError(
                    f"{path} is a single value, expected an array with a row in its first dimension."
                )
        lengths = {shape[0] for shape in shapes.values()}
        if len(lengths) > 1:
            told = ", ".join(f"{path.name} {shape[0]}" for path, shape in shapes.items())
            raise InvalidWriteError(f"The arrays have different numbers of rows: {told}. Convert them one by one.")
        return [_Rows(self.files, start, end) for start, end in split(lengths.pop(), count)]


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    files = [one for one in files_in(path, ".npy") if columns is None or one.stem in columns]
    of_column: dict[str, Path] = {}
    for one in files:
        other = of_column.setdefault(one.stem, one)
        if other != one:
            raise InvalidWriteError(
                f"{other} and {one} are both the column `{one.stem}`. Rename one of them, or convert each folder alone."
            )
    return NpySource(tuple(files)) if files else None
