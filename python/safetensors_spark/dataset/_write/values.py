"""Columns of NumPy, PyTorch and plain Python, as rows that are stored."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidTensorError, InvalidWriteError
from safetensors_spark._files.manifest import Kind
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._ragged import Ragged
from safetensors_spark.dataset._write.chunk import LET_DIFFER, Chunk, check_text, chunk_of, untyped

_EPOCH = "datetime64[us]"


def chunk_of_values(name: str, values: Any, is_ragged: bool) -> Chunk:
    """The rows of an array, a list, a `Ragged`, or a tensor of PyTorch.

    Raises `InvalidWriteError` for what is not a column of tensors.
    """
    if _is_of("torch", values):
        return _of_torch(name, values, is_ragged)
    if isinstance(values, np.ma.MaskedArray):
        values = _unmasked(name, values)
    if isinstance(values, Ragged):
        return check_text(chunk_of(name, values.kind, values.values, values.offsets))
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OUST":
        return _of_array(name, values, is_ragged)
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise InvalidWriteError(
            f"Column `{name}` is a {type(values).__name__}, expected rows: an array, a list, a Ragged, or a tensor of "
            "PyTorch."
        )
    return _of_list(name, values, is_ragged)


def _of_array(name: str, values: Array, is_ragged: bool) -> Chunk:
    if values.ndim == 0:
        raise InvalidWriteError(
            f"Column `{name}` is a single value, expected an array with a row in its first dimension."
        )
    if values.dtype.kind == "M":
        return _of_times(name, values, "date" if np.datetime_data(values.dtype)[0] == "D" else "timestamp_ntz")
    try:
        if not is_ragged:
            return chunk_of(name, "fixed", values)
        if values.ndim < 2:
            raise single_values(name)
        rows, length = values.shape[:2]
        flat = values.reshape(rows * length, *values.shape[2:])
        return _of_rows(name, flat, np.arange(rows + 1, dtype=np.int64) * length)
    except InvalidTensorError as error:
        raise InvalidWriteError(f"Column `{name}`: {error}") from None


def _of_rows(name: str, values: Array, offsets: Array) -> Chunk:
    """Ragged rows. If all are empty lists, they do not tell the shape of a value."""
    chunk = chunk_of(name, "ragged", values, offsets)
    return chunk if len(values) or values.ndim > 1 else replace(chunk, column=replace(chunk.column, shape=None))


def _unmasked(name: str, values: Any) -> Array:
    """The values of an array without masked ones."""
    hidden = np.ma.getmaskarray(values).reshape(len(values), -1).any(axis=1)
    if hidden.any():
        raise null_in(name, int(hidden.argmax()))
    return np.asarray(values.data)


def _of_times(name: str, values: Array, kind: Kind) -> Chunk:
    """Times as numbers since 1970."""
    if np.isnat(values).any():
        raise null_in(name, int(np.isnat(values).argmax()))
    if kind == "date" and (beyond := np.abs(values.astype(np.int64)) >= 2**31).any():
        at = int(beyond.argmax())
        raise InvalidWriteError(f"Column `{name}`, row {at}: {values[at]} is beyond the days that 32 bits can count.")
    stored = values.astype("datetime64[D]" if kind == "date" else _EPOCH)
    if (different := stored.astype(values.dtype) != values).any():
        at = int(different.argmax())
        raise InvalidWriteError(
            f"Column `{name}`, row {at}: {values[at]} is finer than the microseconds that are stored. Round it."
        )
    return chunk_of(name, kind, stored.view(np.int64).astype(np.int32) if kind == "date" else stored.view(np.int64))


def _of_torch(name: str, tensor: Any, is_ragged: bool) -> Chunk:
    if tensor.is_nested:
        return _of_nested(name, tensor)
    return _of_array(name, _numpy_of(name, tensor), is_ragged)


def _of_nested(name: str, tensor: Any) -> Chunk:
    import torch

    # Others, such as views of a dimension, may have their rows in another order, or with gaps.
    if tensor.layout != torch.jagged or tensor.lengths() is not None:
        rows = [_numpy_of(name, row) for row in tensor.unbind()]
        return _of_arrays(name, rows, [True] * len(rows), is_ragged=True)
    return chunk_of(name, "ragged", _numpy_of(name, tensor.values()), _numpy_of(name, tensor.offsets()))


def _numpy_of(name: str, tensor: Any) -> Array:
    """The tensor's memory as an array, also of types that only `ml_dtypes` has."""
    import torch

    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        what = "no values" if tensor.is_meta else f"the layout {tensor.layout} and the dtype {tensor.dtype}"
        raise InvalidWriteError(
            f"Column `{name}` is a tensor of PyTorch with {what}, expected numbers one beside the other. Convert it "
            "first: `to_dense`, `dequantize`."
        )
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16 or str(tensor.dtype).startswith("torch.float8"):
        import ml_dtypes

        kind = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."))
        found: Array = tensor.reshape(-1).view(torch.uint8).numpy().view(kind)
        return found.reshape(tuple(tensor.shape))
    array: Array = tensor.numpy()
    return array


def _of_list(name: str, values: Sequence[Any], is_ragged: bool) -> Chunk:
    if not values:
        return untyped(name, 0, None, is_ragged)
    first = next(iter(values), None)
    for row, value in enumerate(values):
        if value is None:
            raise null_in(name, row)
    if isinstance(first, str):
        return _of_bytes(name, "text", [_encoded(name, row, value) for row, value in enumerate(values)])
    if isinstance(first, bytes | bytearray | memoryview):
        return _of_bytes(name, "binary", [_bytes(name, row, value) for row, value in enumerate(values)])
    if isinstance(first, datetime.datetime):
        _check_all(name, values, "a time", lambda value: isinstance(value, datetime.datetime))
        return _of_datetimes(name, values)
    if isinstance(first, datetime.date):
        # A time is a date to Python.
        _check_all(name, values, "a date", lambda value: type(value) is datetime.date)
        return _of_times(name, np.array(values, "datetime64[D]"), "date")
    arrays = [
        _numpy_of(name, value) if _is_of("torch", value) else _array(name, row, value)
        for row, value in enumerate(values)
    ]
    tells = [array.size > 0 or hasattr(value, "dtype") for array, value in zip(arrays, values, strict=True)]
    return _of_arrays(name, arrays, tells, is_ragged)


def _check_all(name: str, values: Sequence[Any], what: str, is_one: Callable[[Any], bool]) -> None:
    for row, value in enumerate(values):
        if not is_one(value):
            raise InvalidWriteError(f"Column `{name}`, row {row}: {value!r:.80}, expected {what} as in the first row.")


def _encoded(name: str, row: int, value: Any) -> bytes:
    try:
        return str.encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: {value!r:.80} is not text that UTF-8 can store ({error})."
        ) from None


def _bytes(name: str, row: int, value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidWriteError(f"Column `{name}`, row {row}: {value!r:.80}, expected bytes as in the rows before it.")
    return bytes(value)


def _of_bytes(name: str, kind: Kind, rows: list[bytes]) -> Chunk:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return chunk_of(name, kind, np.frombuffer(b"".join(rows), np.uint8), offsets)


def _of_datetimes(name: str, values: Sequence[Any]) -> Chunk:
    """With a time zone they are instants; without one, times of no zone."""
    for row, value in enumerate(values):
        # Those of pandas are finer than Python's.
        if getattr(value, "nanosecond", 0):
            raise InvalidWriteError(
                f"Column `{name}`, row {row}: {value} is finer than the microseconds that are stored. Round it."
            )
    aware = [getattr(value, "tzinfo", None) is not None for value in values]
    if len(set(aware)) > 1:
        raise InvalidWriteError(f"Column `{name}` has times with and without a time zone. Make them alike.")
    if aware[0]:
        utc = [value.astimezone(datetime.timezone.utc).replace(tzinfo=None) for value in values]
        return _of_times(name, np.array(utc, _EPOCH), "timestamp")
    return _of_times(name, np.array(values, _EPOCH), "timestamp_ntz")


def _array(name: str, row: int, value: Any) -> Array:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise null_in(name, row)
    try:
        array: Array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.empty(0, object)
    if array.dtype.kind not in "biufcV" or array.dtype.names:
        raise InvalidWriteError(
            f"Column `{name}`, row {row}: {value!r:.80} is not a tensor: expected numbers, truth values, arrays of "
            "them, text, bytes, dates or times."
        )
    return array


def _of_arrays(name: str, arrays: list[Array], tells: list[bool], is_ragged: bool) -> Chunk:
    """Rows that are arrays: stacked if they have one shape.

    Args:
        tells: whether each tells its dtype. Empty lists do not.
    """
    typed = [array for array, is_typed in zip(arrays, tells, strict=True) if is_typed]
    like = next((array for array in typed if array.size), typed[0] if typed else arrays[0])
    for row, array in enumerate(arrays):
        alike = (
            array.shape[1:] == like.shape[1:] and array.ndim == like.ndim if is_ragged else array.shape == like.shape
        )
        # Nor do they tell the further dimensions.
        if is_ragged and array.ndim == 1 and not array.size:
            continue
        if not alike or (array.dtype != like.dtype and tells[row]):
            known = array if tells[row] else array.astype(like.dtype)
            raise InvalidWriteError(_unlike(name, row, known, like, is_ragged))
    if not typed:
        shape = like.shape if not is_ragged else like.shape[1:] if like.ndim > 1 else None
        return untyped(name, len(arrays), shape, is_ragged)
    if not is_ragged:
        return _of_array(name, np.stack(arrays).astype(like.dtype, copy=False), is_ragged=False)
    if like.ndim == 0:
        raise single_values(name)
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    parts = [array for array in arrays if len(array)] or [like[:0]]
    return _of_rows(name, np.concatenate(parts), offsets)


def _unlike(name: str, row: int, array: Array, like: Array, is_ragged: bool) -> str:
    found, known = (f"{one.dtype} {list(one.shape)}" for one in (array, like))
    if array.dtype != like.dtype:
        remedy = "Cast the rows to one dtype."
    elif is_ragged:
        remedy = "Rows of a ragged column differ in their first dimension alone. Make them alike."
    elif array.ndim == like.ndim and array.ndim and array.shape[1:] == like.shape[1:]:
        remedy = f"Make the rows alike, or {LET_DIFFER}."
    else:
        remedy = "Make the rows alike, or write with `name_col`."
    return f"Column `{name}`, row {row}: {found}, but other rows have {known}. {remedy}"


def single_values(name: str) -> InvalidWriteError:
    """What to say of a column that cannot be ragged."""
    return InvalidWriteError(
        f"Column `{name}` is ragged, by `ragged` or in the dataset, but its rows are single values here, without a "
        "dimension that could differ. Leave it out of `ragged`, or write arrays."
    )


def null_in(name: str, row: int) -> InvalidWriteError:
    """What to say of a row without a value."""
    return InvalidWriteError(
        f"Column `{name}`, row {row}: null, and tensors have no nulls. Fill it, or leave the row out."
    )


def _is_of(package: str, value: object) -> bool:
    return type(value).__module__.partition(".")[0] == package
