"""Columns of Arrow, as rows that are stored: their memory as it is, where the layouts agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Kind
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._write.chunk import LET_DIFFER, Chunk, check_text, chunk_of, untyped
from safetensors_spark.dataset._write.tensor_structs import chunk_of_structs, is_tensor_struct
from safetensors_spark.dataset._write.values import chunk_of_values, null_in, single_values


def chunk_of_arrow(name: str, column: Any, is_ragged: bool) -> Chunk:
    """The rows of a column of a table or a record batch.

    Raises `InvalidWriteError` for nulls, and for types that are no tensors.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    if isinstance(column.type, pa.FixedShapeTensorType):
        return _of_tensors(name, column, is_ragged)
    array = whole(name, column)
    kind = array.type
    if is_tensor_struct(kind):
        return chunk_of_structs(name, array, is_ragged)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_bytes(name, "text", array.cast(pa.large_string()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _of_bytes(name, "binary", array.cast(pa.large_binary()))
    if pa.types.is_date(kind):
        try:
            days = array.cast(pa.date32())
        except pa.ArrowInvalid as error:
            raise InvalidWriteError(f"Column `{name}`: {error}. Dates are stored in days: round them.") from None
        return chunk_of(name, "date", days.cast(pa.int32()).to_numpy(zero_copy_only=False))
    if pa.types.is_timestamp(kind):
        return _of_times(name, array)
    if is_ragged:
        if not _is_list(kind):
            raise single_values(name)
        offsets, inner = _split(array)
        if pa.types.is_null(inner.type) and not len(inner):
            return untyped(name, len(array), None, is_ragged=True)
        return _of_unknown_shape(chunk_of(name, "ragged", _fixed(name, inner), offsets), inner)
    return _of_unknown_shape(chunk_of(name, "fixed", _fixed(name, array)), array)


def _of_tensors(name: str, column: Any, is_ragged: bool) -> Chunk:
    """Tensors of Arrow's own extension type, whose dimensions may be in another order than their values."""
    array = _in_one(column)
    _check_nulls(name, array)
    _check_nulls(name, array.storage.flatten())
    return chunk_of_values(name, array.to_numpy_ndarray(), is_ragged)


def _in_one(column: Any) -> Any:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return _of_64_bits(column)
    array = pa.chunked_array([_of_64_bits(chunk) for chunk in column.chunks] or [_of_64_bits(column.combine_chunks())])
    array = array.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _of_64_bits(array: Any) -> Any:
    """Text and bytes with offsets of 64 bits, and not by a dictionary: those of 32 bits end at 2 GiB."""
    import pyarrow as pa

    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return array
    wide = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
    if isinstance(array, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(wide)).dictionary_decode()
    return array.cast(wide)


def whole(name: str, column: Any) -> Any:
    """A column as one array, without nulls, dictionaries and extensions."""
    import pyarrow as pa

    array = _in_one(column)
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    _check_nulls(name, array)
    return array


def _of_unknown_shape(chunk: Chunk, array: Any) -> Chunk:
    """Without a value, only lists of a fixed size tell how long they are."""
    import pyarrow as pa

    kind = array.type
    while pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return chunk if len(array) or not _is_list(kind) else replace(chunk, column=replace(chunk.column, shape=None))


def _check_nulls(name: str, array: Any) -> None:
    if array.null_count:
        raise null_in(name, array.is_null().index(True).as_py())


def _of_bytes(name: str, kind: Kind, array: Any) -> Chunk:
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return chunk_of(name, kind, np.empty(0, np.uint8), np.zeros(1, np.int64))
    starts = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return check_text(chunk_of(name, kind, values[starts[0] : starts[-1]], starts - starts[0]))


def _of_times(name: str, array: Any) -> Chunk:
    import pyarrow as pa

    try:
        micros = array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid as error:
        raise InvalidWriteError(f"Column `{name}`: {error}. Times are stored in microseconds: round them.") from None
    kind: Kind = "timestamp" if array.type.tz else "timestamp_ntz"
    return chunk_of(name, kind, micros.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _split(array: Any) -> tuple[Array, Any]:
    """Offsets and values of lists."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(array.type):
        return np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size, array.flatten()
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets - offsets[0], array.flatten()


def _fixed(name: str, array: Any) -> Array:
    """An array whose first dimension counts the rows. All lists of one depth must have one length."""
    import pyarrow as pa

    _check_nulls(name, array)
    if _is_list(array.type):
        offsets, inner = _split(array)
        lengths = np.diff(offsets)
        values = _fixed(name, inner)
        if len(lengths) and (lengths != lengths[0]).any():
            row = int((lengths != lengths[0]).argmax())
            raise InvalidWriteError(
                f"Column `{name}`: lists of {lengths[0]} and of {lengths[row]} values. Make them alike, or "
                f"{LET_DIFFER}."
            )
        return values.reshape(len(lengths), lengths[0] if len(lengths) else 0, *values.shape[1:])
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_boolean(array.type)):
        raise InvalidWriteError(
            f"Column `{name}` is {array.type}, which is not a tensor: expected numbers, truth values, lists of them, "
            "text, bytes, dates or times. Choose other columns, or cast it."
        )
    found: Array = array.to_numpy(zero_copy_only=False)
    return found
