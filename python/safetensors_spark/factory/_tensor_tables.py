"""Rows of Hugging Face's library as tables whose columns a safetensors dataset has, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark.dataset import Array, Column, Ragged
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._source import InputShard
from safetensors_spark.pipeline._operations import ShardInfo

# Rows that are converted at a time: images are much larger than their files.
_ROWS = 256

# Names of Arrow's types, by those of safetensors.
_VALUES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
}

_OTHERS = {"text": "string", "binary": "binary", "date": "date32", "timestamp_ntz": "timestamp[us]"}

_NO_PIXELS = pa.array([], pa.list_(pa.uint8()))


@dataclass(frozen=True)
class ToTables:
    """A function of `map_shard`: tables to write of the rows of shards.

    Attributes:
        features: of the columns to write.
        block: the length of blocks that the one column, of tokens, is cut into.
    """

    features: Any
    block: int | None

    def __call__(self, shards: Iterator[tuple[int, InputShard]], _: ShardInfo) -> Iterator[pa.Table]:
        schema = self.features.arrow_schema
        # Without rows, types still tell the columns.
        yield self._table(schema.empty_table())
        for _number, shard in shards:
            tables = (table.select(schema.names).cast(schema) for table in shard.tables())
            parts = (table.slice(begin, _ROWS) for table in tables for begin in range(0, table.num_rows, _ROWS))
            yield from map(self._table, parts) if self.block is None else self._blocks(parts, self.block)

    def _table(self, table: pa.Table) -> pa.Table:
        from datasets import Image

        for place, (name, feature) in enumerate(self.features.items()):
            if isinstance(feature, Image):
                found = _pixels(name, feature, table.column(name)) if table.num_rows else _NO_PIXELS
                table = table.set_column(place, name, found)
        if self.block is not None:
            return pa.table({table.column_names[0]: _cut(table, self.block)[0]})
        return table

    def _blocks(self, tables: Iterator[pa.Table], length: int) -> Iterator[pa.Table]:
        rest = None
        for table in tables:
            found, rest = _cut(table, length, rest)
            if len(found):
                yield pa.table({table.column_names[0]: found})


def _cut(table: pa.Table, length: int, before: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:
    """The tokens of all rows, one row after the other, as lists of one length; and those that are left."""
    column = table.column(0).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    values = column.flatten()
    if values.null_count:
        raise ConfigError(f"`{table.column_names[0]}` has null among its tokens. Drop or replace it first.")
    values = values if before is None else pa.concat_arrays([before, values])
    end = len(values) // length * length
    return pa.FixedSizeListArray.from_arrays(values.slice(0, end), length), values.slice(end)


def _pixels(name: str, feature: Any, column: pa.ChunkedArray) -> pa.Array:
    arrays = []
    for number, value in enumerate(column.to_pylist()):
        if value is None:
            raise ConfigError(f"`{name}` is null in a row, and safetensors has no null. Filter such rows first.")
        try:
            arrays.append(np.asarray(feature.decode_example(value).convert("RGB")))
        except (OSError, ValueError, SyntaxError) as error:
            raise ConfigError(
                f"`{name}` has an image that cannot be decoded, row {number} of these: {error}. Drop such rows with "
                "`image_info` and a filter first."
            ) from error
        if arrays[0].shape != arrays[-1].shape:
            raise ConfigError(
                f"`{name}` has images of shape {list(arrays[0].shape)} and {list(arrays[-1].shape)}: rows of a column "
                "are alike. Make them so with the operator `image_resize`."
            )
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack(arrays))


def feature_of(column: Column, has_rows: bool) -> Any:
    """The feature that a column is read as: without rows, `List` where the shape is not known.

    Raises `ConfigError` for one that Arrow does not have.
    """
    from datasets import Array2D, Array3D, Array4D, Array5D, List, Value

    if column.kind in _OTHERS:
        return Value(_OTHERS[column.kind])
    if column.kind == "timestamp":
        return Value("timestamp[us, tz=UTC]")
    if not has_rows and column.dtype in _VALUES and (column.shape is None or 0 in column.shape):
        return List(Value(_VALUES[column.dtype]))
    if column.dtype not in _VALUES or column.shape is None:
        what = "tensors of different dtypes or shapes" if None in (column.dtype, column.shape) else str(column.dtype)
        raise ConfigError(
            f"the column `{column.name}` has {what}, which Hugging Face's datasets do not have. Name the others with "
            "`columns=`."
        )
    value, shape = Value(_VALUES[column.dtype]), column.shape
    if column.kind == "ragged":
        found = value
        for size in reversed(shape):
            found = List(found, length=size)
        return List(found)
    if len(shape) > 5 or 0 in shape:
        raise ConfigError(
            f"the column `{column.name}` has the shape {list(shape)}, which Hugging Face's datasets do not have. Name "
            "the others with `columns=`."
        )
    if len(shape) < 2:
        return List(value, length=shape[0]) if shape else value
    return (Array2D, Array3D, Array4D, Array5D)[len(shape) - 2](shape=shape, dtype=value.dtype)


def array_of(values: Any, kind: pa.DataType) -> pa.Array:
    """What samples have of a column, as an array of the feature's type."""
    if isinstance(values, Ragged):
        if values.kind != "ragged":
            return pa.array(values.tolist(), kind)
        inner = _nested(values.values, kind.value_type)
        return pa.ListArray.from_arrays(pa.array(values.offsets.astype(np.int32)), inner, type=kind)
    array = np.ascontiguousarray(values)
    if isinstance(kind, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(kind, _nested(array, kind.storage_type))
    return _nested(array, kind)


def _nested(values: Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        flat = _nested(values.reshape(-1, *values.shape[2:]), kind.value_type)
        return pa.FixedSizeListArray.from_arrays(flat, type=kind)
    if pa.types.is_list(kind):
        flat = _nested(values.reshape(-1, *values.shape[2:]), kind.value_type)
        offsets = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
        return pa.ListArray.from_arrays(pa.array(offsets), flat, type=kind)
    return pa.array(values, kind)
