"""Typed helpers for the connector's SQL functions, for classic sessions and Spark Connect alike.

The session must have the functions: build it with `safetensors_spark.configure`, or call `safetensors_spark.attach`.
Where a Spark Connect server was started without the jar, the helpers call the catalog's: `safetensors.arr_to_st` and so
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from safetensors_spark._spark import connect as _connect

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql._typing import ColumnOrName

__all__ = ["Dtype", "Rounding", "arr_to_st", "st_show", "st_to_array", "st_to_array_double", "st_to_array_long"]

Dtype = Literal[
    "F16", "F32", "F64", "BF16", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "BOOL", "F8_E4M3", "F8_E5M2"
]
"""The dtypes that numbers can be encoded as."""

Rounding = Literal["truncate", "nearest_even"]
"""What becomes of the bits that F16 and BF16 have no room for."""


def arr_to_st(
    array: ColumnOrName,
    shape: Sequence[int] | Column,
    dtype: Dtype | Column,
    rounding: Rounding | None = None,
) -> Column:
    """Encode an array of numbers as a Tensor Struct.

    Args:
        array: a column of `array<T>`, T any numeric type or boolean: the elements in row-major order.
        shape: the dimensions, whose product is the number of elements; `[]` for a scalar, an array of one.
        dtype: what an element becomes; one that goes to an integer gives up its fraction. `F8_E4M3` and `F8_E5M2` take
            every number as PyTorch does: one beyond the largest becomes 448 in the one, and infinite in the other.
        rounding: `truncate` (the default) cuts what F16 and BF16 cannot hold, and can differ from NumPy and PyTorch in
            the last place; `nearest_even` gives what they give.

    Returns:
        A column `struct<data: binary, shape: array<int>, dtype: string>`; null where an argument is null. `data` is
        little-endian and `product(shape)` elements long.

    Spark fails the query when the shape does not fit the array, when an element is null, and when a value is out of
    the dtype's range. A literal shape or dtype that is wrong is an `AnalysisException`, before anything runs.
    """
    from pyspark.sql import functions as F

    dims = F.array(*map(F.lit, shape)).cast("array<int>") if isinstance(shape, Sequence) else shape
    name = F.lit(dtype) if isinstance(dtype, str) else dtype
    rest = [] if rounding is None else [F.lit(rounding)]
    return _call("arr_to_st", array, dims, name, *rest)


def st_to_array(tensor: ColumnOrName) -> Column:
    """Decode a Tensor Struct to a flat array of 32-bit floats.

    Args:
        tensor: a column `struct<data: binary, shape: array<int>, dtype: string>` of any dtype but C64 and those whose
            elements are smaller than a byte.

    Returns:
        A column `array<float>` of `product(shape)` elements in row-major order; null where the tensor is null.
        F16 and BF16 come through exactly; F64 and integers past 2^24 are rounded to the nearest float.

    Spark fails the query when the bytes do not fit shape and dtype.
    """
    return _call("st_to_array", tensor)


def st_to_array_double(tensor: ColumnOrName) -> Column:
    """Decode a Tensor Struct to a flat array of 64-bit floats.

    Args:
        tensor: a column `struct<data: binary, shape: array<int>, dtype: string>` of any dtype but C64 and those whose
            elements are smaller than a byte.

    Returns:
        A column `array<double>` of `product(shape)` elements in row-major order; null where the tensor is null.
        All come through exactly but integers past 2^53, which are rounded to the nearest double.

    Spark fails the query when the bytes do not fit shape and dtype.
    """
    return _call("st_to_array_double", tensor)


def st_to_array_long(tensor: ColumnOrName) -> Column:
    """Decode a Tensor Struct to a flat array of 64-bit integers.

    Args:
        tensor: a column `struct<data: binary, shape: array<int>, dtype: string>` of any dtype but C64 and those whose
            elements are smaller than a byte.

    Returns:
        A column `array<bigint>` of `product(shape)` elements in row-major order; null where the tensor is null.
        Integers come through exactly; floats give up their fraction.

    Spark fails the query when the bytes do not fit shape and dtype, and when an element is NaN, infinite or past what
    a 64-bit integer holds, with its value and index.
    """
    return _call("st_to_array_long", tensor)


def st_show(tensor: ColumnOrName, values: int | Column | None = None) -> Column:
    """Show a Tensor Struct as text, which `df.show()` prints: its dtype, its shape and its first values.

        df.select(st_show("x")).show(truncate=False)  # F32[2, 2] 0.5 1.25 -3 ...

    Args:
        tensor: a column `struct<data: binary, shape: array<int>, dtype: string>` of any dtype.
        values: how many values to show; 3 by default.

    Returns:
        A column `string`; null where an argument is null. Floats are rounded to six digits. Of F4, F6_E2M3 and
        F6_E3M2, whose elements share bytes, it shows the first bytes, in hexadecimal.

    Spark fails the query when the bytes do not fit shape and dtype, and when `values` is negative.
    """
    from pyspark.sql import functions as F

    rest = [] if values is None else [F.lit(values)]
    return _call("st_show", tensor, *rest)


def _call(function: str, *arguments: ColumnOrName) -> Column:
    from pyspark.sql import functions as F

    return F.call_function(_connect.function_name(function), *arguments)
