"""Columns of several parts of a dataset, which must agree in batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.commit.written import WriteRecord
from safetensors_spark._files.manifest import Column, Manifest, Mode

# What errors call the rows that are there.
THE_DATASET = "the dataset"


def merged_columns(mode: Mode, kept: Manifest | None, records: Sequence[WriteRecord]) -> tuple[Column, ...]:
    """The columns of a dataset after a commit. Writers without rows do not know all shapes, and do not count.

    Raises `InvalidWriteError` if rows of batches differ in dtype or shape.
    """
    old = [(THE_DATASET, kept.columns)] if kept and kept.shards else []
    added = [(record.shards[0].file, record.columns) for record in records if record.shards]
    parts: list[tuple[str, tuple[Column, ...]]] = [*old, *added]
    if not parts:
        return records[0].columns if records else ()
    _check_names(parts)
    names = [column.name for column in parts[0][1]]
    found = {name: [(place, one) for place, columns in parts for one in columns if one.name == name] for name in names}
    if mode == "batch":
        return tuple(_agreed(found[name]) for name in names)
    return tuple(_merged([column for _, column in found[name]]) for name in names)


def _check_names(parts: Iterable[tuple[str, tuple[Column, ...]]]) -> None:
    first: tuple[str, list[str]] | None = None
    for place, columns in parts:
        names = sorted(column.name for column in columns)
        if first is None:
            first = place, names
        elif names != first[1]:
            raise InvalidWriteError(
                f"{place} has the columns {', '.join(names)}, but {first[0]} has {', '.join(first[1])}. All writers of "
                "a dataset must write the same columns."
            )


def _agreed(found: Sequence[tuple[str, Column]]) -> Column:
    """The column that all parts have."""
    place, known = next(((place, one) for place, one in found if one.shape is not None), found[0])
    for other, column in found:
        if differ(known, column):
            raise InvalidWriteError(
                f"Column `{known.name}`: {shown(column)} in {other}, but {shown(known)} in {place}. "
                f"{remedy(column, known, THE_DATASET in (place, other))}."
            )
    return replace(known, type=next((column.type for _, column in found if column.type), None))


def _merged(columns: Sequence[Column]) -> Column:
    """The column of tensors by key, which may differ. What not all agree in is None."""
    dtypes, shapes = {one.dtype for one in columns}, {one.shape for one in columns}
    return replace(
        columns[0],
        dtype=columns[0].dtype if len(dtypes) == 1 else None,
        shape=columns[0].shape if len(shapes) == 1 else None,
        type=next((one.type for one in columns if one.type), None),
    )


def differ(one: Column, other: Column) -> bool:
    """Whether both are known to differ."""
    return one.kind != other.kind or any(
        left is not None and right is not None and left != right
        for left, right in ((one.dtype, other.dtype), (one.shape, other.shape))
    )


def shown(column: Column) -> str:
    """Dtype and shape, for errors."""
    dims = ["..."] if column.shape is None else [str(dim) for dim in column.shape]
    kind = "" if column.kind == "fixed" else f"{column.kind} "
    return f"{kind}{column.dtype or '?'} [{', '.join(['?', *dims] if column.has_offsets else dims)}]"


def remedy(one: Column, other: Column, of_dataset: bool) -> str:
    """What to do about rows that differ from others, which are those of a dataset, or of the same write."""
    elsewhere = ", write to another directory, or overwrite it" if of_dataset else ""
    if one.kind != other.kind:
        return f"Make the rows alike{elsewhere}"
    if one.dtype != other.dtype:
        # Rows without values, of which there is no shape, take any dtype.
        dtype = one.dtype if other.shape is None and not of_dataset else other.dtype
        return f"Cast them, or have them converted by `dtype={{{one.name!r}: {dtype!r}}}`{elsewhere}"
    if one.has_offsets:
        return f"Rows of a ragged column differ in their first dimension alone. Make them alike{elsewhere}"
    if one.shape and other.shape and one.shape[1:] == other.shape[1:]:
        if of_dataset:
            return f"Make the rows alike{elsewhere}: with the column in `ragged`, their first dimension may differ"
        return (
            "Make the rows alike, or write all of them with the column in `ragged`, which lets their first dimension "
            "differ"
        )
    return f"Make the rows alike{elsewhere or ', or write with `name_col`'}"
