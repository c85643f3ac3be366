"""The dtypes of safetensors as NumPy has them; `ml_dtypes` brings those that NumPy itself lacks."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.dtypes import DTYPES

Array: TypeAlias = np.ndarray[Any, Any]
"""A tensor."""

# Those that NumPy has by itself.
NUMPY = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_ML_DTYPES = {
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "BF16": "bfloat16",
}
_NAMES = {numpy: name for name, numpy in (NUMPY | _ML_DTYPES).items()}


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's type of a dtype, little-endian. Raises `InvalidTensorError` where there is none."""
    if name in NUMPY:
        return np.dtype(NUMPY[name]).newbyteorder("<")
    if name not in _ML_DTYPES:
        raise InvalidTensorError(_no_type(name))
    scalar: type = getattr(import_module("ml_dtypes"), _ML_DTYPES[name])
    return np.dtype(scalar)


def item_size(name: str) -> int:
    """Bytes of an element. Raises `InvalidTensorError` for what has no elements of whole bytes."""
    if DTYPES.get(name, 1) % 8:
        raise InvalidTensorError(_no_type(name))
    return DTYPES[name] // 8


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The dtype of an array of this type. Raises `InvalidTensorError` where there is none."""
    if dtype.name not in _NAMES:
        raise InvalidTensorError(f"NumPy's {dtype.name} is not a dtype of safetensors; those are {', '.join(_NAMES)}.")
    return _NAMES[dtype.name]


def _no_type(name: str) -> str:
    if name in DTYPES:
        return f"{name} has elements smaller than a byte, for which NumPy has no type: take the bytes of `data`."
    return f"{name!r} is not a dtype of safetensors."
