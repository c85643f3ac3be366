"""Values as an array of Arrow of a type, which has all of each value or is an error."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.types as types  # type: ignore[import-untyped]


def exact_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The array. Raises what Arrow does for a value that it does not take, and `ValueError` for one that it would cut
    off: a fraction in a column of integers, the time of day in one of dates.
    """
    may_cut = _has(kind, _is_time) or _has(kind, types.is_integer)
    if may_cut and not _has(kind, _is_time):
        try:
            found = pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
        else:
            if found.type == kind:
                return found
            may_cut = _may_cut(found.type, kind)
    found = pa.array(values, kind)
    if isinstance(found, pa.ChunkedArray):
        raise ValueError("they are more than 2 GiB together; an array of Arrow has less")
    if may_cut:
        for value, stored in zip(values, found.to_pylist(), strict=True):
            if not _is_whole(value, stored):
                raise ValueError(f"{value!r:.100} would become {stored!r:.100}")
    return found


def _may_cut(known: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of a known type might lose a fraction."""
    if types.is_struct(known) and types.is_struct(kind):
        found = [(one, kind.get_field_index(one.name)) for one in known.fields]
        return any(place >= 0 and _may_cut(one.type, kind.field(place).type) for one, place in found)
    if types.is_list(known) and kind.num_fields == 1:
        return _may_cut(known.value_type, kind.field(0).type)
    return not (types.is_integer(known) or types.is_null(known)) and _has(kind, types.is_integer)


def _has(kind: pa.DataType, wanted: Any) -> bool:
    return bool(wanted(kind)) or any(_has(kind.field(place).type, wanted) for place in range(kind.num_fields))


def _is_time(kind: pa.DataType) -> bool:
    return bool(types.is_temporal(kind))


def _is_whole(value: Any, stored: Any) -> bool:
    """Whether a value has lost nothing on its way to Arrow."""
    match value:
        case float() | Decimal() | np.floating():
            return not isinstance(stored, int) or bool(value == stored)
        case datetime.datetime():
            if isinstance(stored, datetime.datetime):
                return (value.second, value.microsecond) == (stored.second, stored.microsecond)
            return not isinstance(stored, datetime.date) or value.time() == datetime.time()
        case datetime.timedelta():
            return bool(value == stored)
        case datetime.time():
            return bool(value.replace(tzinfo=None) == stored)
        case dict() if isinstance(stored, dict):
            return all(_is_whole(one, stored[name]) for name, one in value.items() if name in stored)
        case list() | tuple() | np.ndarray() if isinstance(stored, list):
            return all(map(_is_whole, value, stored))
    return True
