"""Kinds of columns in a shard: `format/dataset.md` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast, get_args

from safetensors_spark._errors import DamagedShardError
from safetensors_spark._files.header import Header
from safetensors_spark._files.json_text import parse_json
from safetensors_spark._files.manifest import Column, Kind
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.tensors import TensorInfo

# Dtype and shape of the kinds that prescribe them.
_EXPECTED: Mapping[Kind, tuple[str, tuple[int, ...]]] = {
    "text": ("U8", ()),
    "binary": ("U8", ()),
    "date": ("I32", ()),
    "timestamp": ("I64", ()),
    "timestamp_ntz": ("I64", ()),
}
_METADATA = "column_kinds"


def has_kinds(header: Header) -> bool:
    """Whether the shard's metadata names kinds of columns."""
    return _METADATA in header.metadata


def kinds_in(header: Header, file: str) -> Mapping[str, Kind]:
    """The kinds that the shard's metadata names, by column; columns that it does not name are fixed.

    Raises `DamagedShardError`, which calls the shard `file`, for kinds that nobody knows, and of columns that are not
    there.
    """
    text = header.metadata.get(_METADATA)
    if text is None:
        return {}
    try:
        kinds = parse_json(text.encode())
    except ValueError as error:
        raise DamagedShardError(f"{file}: `{_METADATA}` of its metadata is not JSON ({error}).") from None
    if not isinstance(kinds, dict):
        raise DamagedShardError(f"{file}: `{_METADATA}` of its metadata is `{text:.100}`, expected a JSON object.")
    for column, kind in kinds.items():
        if kind not in get_args(Kind):
            raise DamagedShardError(
                f"{file}: column `{column:.200}` is of kind `{kind!s:.100}`, expected one of "
                f"{', '.join(get_args(Kind))}: a newer version may read it."
            )
        if column not in header.by_name:
            raise DamagedShardError(f"{file} has no tensor `{column:.200}`, of which its metadata names the kind.")
    return cast(Mapping[str, Kind], kinds)


def columns_in(header: Header, file: str) -> tuple[Column, ...]:
    """The columns of a shard by what it says itself. Raises `DamagedShardError`."""
    kinds = kinds_in(header, file)
    columns = [
        with_shape(Column(one.name, one.dtype, None, kinds.get(one.name, "fixed")), one) for one in header.tensors
    ]
    offsets = {column.tensors[1] for column in columns if column.has_offsets}
    return tuple(column for column in columns if column.name not in offsets)


def with_shape(column: Column, tensor: TensorInfo | None) -> Column:
    """The column with the shape of the tensor, if it was not known. Rows without values do not tell it."""
    if column.shape is not None or tensor is None or (column.kind == "ragged" and tensor.shape[:1] == (0,)):
        return column
    return replace(column, shape=tensor.shape[1:])


def rows_tensor(header: Header, column: Column, file: str) -> tuple[TensorInfo, int]:
    """The tensor that tells how many rows the column has, and their number, padding among them; -1 if it tells none.

    Raises `DamagedShardError` for a column whose tensors are not what its kind prescribes.
    """
    values = header.by_name.get(column.name)
    if values is None:
        raise DamagedShardError(f"{file} has no tensor `{column.name}`, which other shards have.")
    if column.kind != "fixed":
        _check_kind(values, column.kind, file)
    if not column.has_offsets:
        return values, values.shape[0] if values.shape else -1
    _, name = column.tensors
    offsets = header.by_name.get(name)
    if offsets is None:
        raise DamagedShardError(f"{file} has no tensor `{name}`, which a {column.kind} column has.")
    if offsets.dtype != "I64" or len(offsets.shape) != 1 or not offsets.shape[0]:
        raise DamagedShardError(
            f"{file}: tensor `{name}` is of {offsets.dtype} {list(offsets.shape)}, expected I64 [rows + 1]."
        )
    return offsets, offsets.shape[0] - 1


def _check_kind(values: TensorInfo, kind: Kind, file: str) -> None:
    dtype, shape = _EXPECTED.get(kind, (values.dtype, values.shape[1:]))
    if not values.shape or (values.dtype, values.shape[1:]) != (dtype, shape):
        raise DamagedShardError(
            f"{file}: tensor `{values.name}` of a {kind} column is of {values.dtype} {list(values.shape)}, expected "
            f"{dtype} [{', '.join(['rows', *map(str, shape)])}]."
        )


def offsets_fault(offsets: Array, samples: int, values: int) -> str | None:
    """What is wrong with the offsets of so many samples and padding rows; there are so many values."""
    if offsets[0] != 0:
        return f"begins with {offsets[0]}, expected 0"
    less = offsets[1:] < offsets[:-1]
    if less.any():
        row = int(less.argmax())
        return f"decreases from {offsets[row]} to {offsets[row + 1]} in row {row}"
    if offsets[-1] != values:
        return f"ends with {offsets[-1]}, expected {values}, which is the number of values"
    if offsets[samples] != values:
        return f"has values in rows from {samples} on, which only fill up the shard"
    return None
