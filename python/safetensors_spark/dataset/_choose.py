"""Which columns are read of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.column_kinds import columns_in, with_shape
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import Column

_T = TypeVar("_T")


def choose(contents: Contents, chosen: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns of these names; all by default, those of partitions last.

    Raises `SafetensorsSparkError` for columns that do not exist, or not in all partitions.
    """
    if isinstance(chosen, str):
        raise TypeError(f"columns is the string {chosen!r:.200}, expected a list of names: columns=[{chosen!r:.200}]")
    found = _of_partitions(contents, chosen) if contents.parts else _of_files(contents)
    named = {column.name: column for column in found}
    unknown = [name for name in chosen or () if name not in named]
    if unknown:
        raise SafetensorsSparkError(f"{contents.location} has no column `{unknown[0]}`; it has {', '.join(named)}.")
    read = found if chosen is None else tuple(named[name] for name in chosen)
    for column in read:
        _check_values(contents, column)
    return read


def _of_files(contents: Contents) -> tuple[Column, ...]:
    if contents.manifest:
        return contents.manifest.columns
    first, *others = contents.shards
    columns = columns_in(contents.header(first), f"{contents.folder.location}/{first.file}")
    for shard in others:
        if all(column.shape is not None for column in columns):
            break
        found = contents.header(shard).by_name
        columns = tuple(with_shape(column, found.get(column.name)) for column in columns)
    return columns


def _of_partitions(contents: Contents, chosen: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns that all partitions have. Of those without a manifest one is looked at."""
    listed = {path: part.contents for path, part in contents.parts.items() if part.contents.manifest}
    others = {path: part.contents for path, part in contents.parts.items() if not part.contents.manifest}
    looked_at = {**listed, **dict(list(others.items())[:1])}
    found = {path: {column.name: column for column in _of_files(one)} for path, one in looked_at.items()}
    # A dataset without rows may know no columns.
    found = {path: columns for path, columns in found.items() if columns}
    first, columns = next(iter(found.items()), ("", {}))
    names = set(columns).union(*found.values()) if chosen is None else set(chosen)
    for path, other in found.items():
        for name in sorted(names & (set(columns) ^ set(other))):
            has, lacks = (first, path) if name in columns else (path, first)
            raise SafetensorsSparkError(
                f"{contents.location}: `{has}` has a column `{name}`, and `{lacks}` has none: choose others with "
                "`columns`."
            )
    # Spark does not tell names by their case.
    lower = {name.lower(): name for name in columns}
    for column in contents.partition_columns:
        if column.name.lower() in lower:
            raise SafetensorsSparkError(
                f"{contents.location}: `{lower[column.name.lower()]}` is a column of the files, and folders are named "
                f"`{column.name}=...`: open the folders one by one."
            )
    merged = (_merged(contents, [one[name] for one in found.values() if name in one]) for name in columns)
    return (*merged, *contents.partition_columns)


def _merged(contents: Contents, columns: Sequence[Column]) -> Column:
    first = columns[0]
    if any(column.kind != first.kind for column in columns):
        raise SafetensorsSparkError(
            f"{contents.location}: column `{first.name}` is {first.kind} in one partition, and "
            f"{next(column.kind for column in columns if column.kind != first.kind)} in another: open them one by one."
        )
    dtype, shape = _only(column.dtype for column in columns), _only(column.shape for column in columns)
    return replace(first, dtype=dtype, shape=shape)


def _only(values: Iterable[_T]) -> _T | None:
    """The one that all agree in."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _check_values(contents: Contents, column: Column) -> None:
    """Samples have no nulls."""
    nulls = [path for path, part in contents.parts.items() if part.values.get(column.name, b"") is None]
    if nulls:
        raise SafetensorsSparkError(
            f"{contents.location}: `{nulls[0]}` has no value of the column `{column.name}`, and samples have no nulls: "
            "name the columns to read without it, with `columns`."
        )
