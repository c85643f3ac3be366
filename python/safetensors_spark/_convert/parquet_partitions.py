"""Columns of Parquet files in folders named `key=value`: their types and values are those that Spark infers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files import partition_columns
from safetensors_spark._files.manifest import Column
from safetensors_spark._files.numpy_dtypes import numpy_dtype


@dataclass(frozen=True)
class Value:
    """What a folder says of all rows below it.

    Attributes:
        stored: the bytes of the value.
    """

    column: Column
    stored: bytes

    def repeated(self, count: int) -> Any:
        """The value for so many rows, as an array of Arrow."""
        import pyarrow as pa  # type: ignore[import-untyped]

        if self.column.kind == "text":
            return pa.array([self.stored.decode()] * count, pa.large_string())
        array = pa.array(np.repeat(np.frombuffer(self.stored, numpy_dtype(str(self.column.dtype))), count))
        times = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us")}
        return array.cast(times[self.column.kind]) if self.column.kind in times else array


def partition_values(
    folder: Path, files: Sequence[Path], columns: Collection[str] | None
) -> Mapping[Path, tuple[Value, ...]]:
    """For each file the values of those partition columns that are read: all, or some.

    Raises `InvalidWriteError` for files whose folders name different columns, or one twice, and for nulls.
    """
    found = {file: _named(folder, file) for file in files}
    names = [name for name, _ in found[files[0]]]
    for file in files:
        here = [name for name, _ in found[file]]
        if here != names:
            raise InvalidWriteError(
                f"The folders of {folder} name different partition columns: {', '.join(names) or 'none'} for "
                f"{files[0]}, and {', '.join(here) or 'none'} for {file}. Convert them one by one."
            )
    if len({name.lower() for name in names}) < len(names):
        raise InvalidWriteError(
            f"The folders of {files[0]} name a partition column twice: {', '.join(names)}. Rename one."
        )
    values: dict[Path, tuple[Value, ...]] = dict.fromkeys(files, ())
    for place, name in enumerate(names):
        if columns is not None and name not in columns:
            continue
        column, stored = partition_columns.column(name, [found[file][place][1] for file in files])
        for file, value in zip(files, stored, strict=True):
            if value is None:
                raise InvalidWriteError(
                    f"{file} is in the folder of rows without a `{name}`, and tensors have no nulls. Move the folder "
                    "elsewhere, or choose other columns with `--columns`."
                )
            values[file] += (Value(column, value),)
    return values


def _named(folder: Path, file: Path) -> list[tuple[str, str]]:
    below = () if file == folder else file.relative_to(folder).parts[:-1]
    return [found for found in map(partition_columns.parse, below) if found]
