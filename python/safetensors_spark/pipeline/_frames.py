"""Rows as bytes, some hundred at a time: Arrow's where these are exactly the rows again, pickled ones otherwise."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

_ARROW, _PICKLED = b"A", b"P"

# Values of these types, and of no others derived from them, come back as they were.
_TYPES: dict[type, pa.DataType] = {
    str: pa.large_string(),
    bytes: pa.large_binary(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}


def encode(rows: list[Any]) -> bytes:
    """The bytes of a frame."""
    batch = _as_arrow(rows)
    if batch is not None:
        out = io.BytesIO()
        out.write(_ARROW)
        with pa.ipc.new_stream(out, batch.schema) as stream:
            stream.write_batch(batch)
        return out.getvalue()
    return _PICKLED + pickled(rows)


def decode(frame: bytes) -> list[Any]:
    """The rows of a frame. Only for bytes that this run has written: pickled ones may do anything."""
    if frame[:1] == _PICKLED:
        rows: list[Any] = pickle.loads(memoryview(frame)[1:])
        return rows
    with pa.ipc.open_stream(memoryview(frame)[1:]) as stream:
        batch = stream.read_next_batch()
    names = batch.schema.names
    columns = [column.to_pylist() for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def pickled(value: Any) -> bytes:
    """The value's bytes, also of what a script itself defines."""
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle

        return bytes(cloudpickle.dumps(value, 5))


def _as_arrow(rows: list[Any]) -> pa.RecordBatch | None:
    """The rows as columns; None unless they come back exactly."""
    first = rows[0] if rows else None
    if type(first) is not dict or not first:
        return None
    names = tuple(first)
    if not all(type(name) is str for name in names):
        return None
    for row in rows:
        if type(row) is not dict or tuple(row) != names:
            return None
    columns = list(zip(*(row.values() for row in rows), strict=True))
    types = [_type(column) for column in columns]
    if None in types:
        return None
    try:
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))
    except (pa.ArrowException, OverflowError, UnicodeError):
        # Integers of more than 64 bits, and text that is no UTF-8.
        return None


def _type(column: Sequence[Any]) -> pa.DataType | None:
    """The type of all values of a column, which may also be None; None if there is no such type."""
    kinds = set(map(type, column)) - {type(None)}
    if not kinds:
        return pa.null()
    if len(kinds) > 1:
        return None
    kind = kinds.pop()
    if kind is not list:
        return _TYPES.get(kind)
    inner = set(map(type, chain.from_iterable(one for one in column if one is not None)))
    if len(inner) != 1:
        return None
    found = _TYPES.get(inner.pop())
    return None if found is None else pa.large_list(found)


def weight(value: Any) -> int:
    """About how many bytes of memory a row takes."""
    if isinstance(value, dict):
        return 200 + sum(weight(one) for one in value.values())
    if isinstance(value, list | tuple):
        if len(value) > 32:
            # Long lists are of one kind: tokens, mostly.
            return 64 + len(value) * (8 + sum(map(weight, value[:16])) // 16)
        return 64 + sum(8 + weight(one) for one in value)
    size = getattr(value, "nbytes", None)
    return int(size) + 128 if isinstance(size, int) else sys.getsizeof(value)
