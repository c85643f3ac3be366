"""A dataset's columns in the two forms that MLflow has for schemas."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from safetensors_spark._manifest import Column

if TYPE_CHECKING:
    from mlflow.data.schema import TensorDatasetSchema

# Those that NumPy has by itself.
_NUMPY = {
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
    "C64": "complex64",
}


def table(columns: Sequence[Column]) -> dict[str, Any]:
    """What MLflow's page shows, a line for each column. Of tensors it would show only that there are some."""
    return {"mlflow_colspec": [{"name": column.name, "type": _type(column)} for column in columns]}


def _type(column: Column) -> str:
    shape = "?" if column.shape is None else ", ".join(map(str, column.shape))
    return f"{column.dtype or '?'} [{shape}]"


def tensors(columns: Sequence[Column]) -> TensorDatasetSchema | None:
    """What MLflow's own code reads; None where it has no words for a column, and where NumPy is missing."""
    if not columns or not all(map(_is_known, columns)) or find_spec("numpy") is None:
        return None
    import numpy as np
    from mlflow.data.schema import TensorDatasetSchema
    from mlflow.types import Schema, TensorSpec

    def spec(column: Column) -> TensorSpec:
        return TensorSpec(np.dtype(_NUMPY[str(column.dtype)]), (-1, *(column.shape or ())), column.name)

    return TensorDatasetSchema(Schema([spec(column) for column in columns]))


def _is_known(column: Column) -> bool:
    return column.dtype in _NUMPY and column.shape is not None
