"""Batches of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from safetensors_spark._errors import InvalidTensorError
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._columns import Columns, Gathered, MappedColumn, mapped_column
from safetensors_spark.dataset._forms import Form
from safetensors_spark.dataset._memory import Memory
from safetensors_spark.dataset._ragged import Packed, Padded, Ragged, packed_offsets
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._shards import ShardColumn
from safetensors_spark.torch._memory import new

Batch = dict[str, Any]

DTYPES: Mapping[str, torch.dtype] = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
} | {
    # Older versions of PyTorch lack them.
    name: getattr(torch, attribute)
    for name, attribute in (("F8_E8M0", "float8_e8m0fnu"), ("F4", "float4_e2m1fn_x2"))
    if hasattr(torch, attribute)
}


def samples_of(dataset: object, taker: str) -> Samples:
    """The samples of what `open_dataset` or `mix` returned. Raises `TypeError` for anything else."""
    samples = getattr(dataset, "samples", None)
    if isinstance(samples, Samples):
        return samples
    raise TypeError(
        f"{taker} takes a dataset of samples, not {type(dataset).__name__}: use `{taker}(open_dataset(path), ...)`"
    )


def tensor_columns(samples: Samples) -> Columns[torch.dtype, Tensor]:
    """The columns of these samples as tensors."""
    return Columns(samples, _view, _new)


def _view(column: ShardColumn) -> MappedColumn[torch.dtype]:
    if column.dtype not in DTYPES:
        raise InvalidTensorError(f"{column.dtype} is not a dtype of PyTorch {torch.__version__}.")
    return mapped_column(DTYPES[column.dtype], _pairs(column.shape) if column.dtype == "F4" else column.shape, column)


def _pairs(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape as PyTorch counts it, which has two elements of four bits in one."""
    if len(shape) < 2 or shape[-1] % 2:
        raise InvalidTensorError(
            f"its shape is {list(shape)}, and PyTorch has F4 only in pairs along the last dimension."
        )
    return (*shape[:-1], shape[-1] // 2)


def _new(count: int, column: MappedColumn[torch.dtype]) -> tuple[Tensor, Memory]:
    return new(column.dtype, (count, *column.shape), column.rows.shape[1])


def tensor_dtype(value: Any) -> torch.dtype:
    """A dtype, or the one of this name. Raises `TypeError` for anything else."""
    found = getattr(torch, value, None) if isinstance(value, str) else value
    if not isinstance(found, torch.dtype):
        raise TypeError(f"dtype is {value!r:.100}, expected a dtype of PyTorch, such as torch.float32, or its name")
    return found


def finish_tensors(
    forms: Mapping[str, Form], dtype: Mapping[str, torch.dtype] | torch.dtype | None, batch: Batch
) -> Batch:
    """A batch for its consumer: cast, and each ragged column in its form."""
    return {
        name: _in_form(_cast(name, value.values, dtype), value.offsets, forms[name])
        if isinstance(value, Gathered)
        else value.tolist()
        if isinstance(value, Ragged)
        else value
        if isinstance(value, int | list)
        else torch.from_numpy(value)
        if isinstance(value, np.ndarray)
        else _cast(name, value, dtype)
        for name, value in batch.items()
    }


def _in_form(values: Tensor, offsets: Array, form: Form) -> Tensor | Packed | Padded:
    if form == "nested":
        return torch.nested.nested_tensor_from_jagged(values, torch.from_numpy(offsets))
    if form == "packed":
        longest = int(np.diff(offsets).max(initial=0))
        return Packed(values, torch.from_numpy(packed_offsets(offsets)), longest)
    # NumPy takes a fifth of PyTorch's time for a row, but does not know all dtypes.
    width = values.dtype.itemsize * prod(values.shape[1:])
    as_bytes = values.reshape(-1).view(torch.uint8).numpy().reshape(len(values), width)
    padded, mask = Ragged(as_bytes, offsets).to_padded()
    filled = torch.from_numpy(padded.reshape(-1)).view(values.dtype).view(*mask.shape, *values.shape[1:])
    return Padded(filled, torch.from_numpy(mask))


def _cast(name: str, tensor: Tensor, dtype: Mapping[str, torch.dtype] | torch.dtype | None) -> Tensor:
    """Casts the columns that a mapping names, or else all columns of floating-point numbers."""
    if isinstance(dtype, Mapping):
        return tensor.to(dtype.get(name, tensor.dtype))
    return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)
