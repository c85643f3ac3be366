"""A dataset's columns in the two forms that MLflow has for schemas."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from safetensors_spark._files.manifest import Column

if TYPE_CHECKING:
    from mlflow.data.schema import TensorDatasetSchema


def table(columns: Sequence[Column]) -> dict[str, Any]:
    """What MLflow's page shows, a line for each column. Of tensors it would show only that there are some."""
    return {"mlflow_colspec": [{"name": column.name, "type": _type(column)} for column in columns]}


def _type(column: Column) -> str:
    shape = column.sample_shape
    dims = "?" if shape is None else ", ".join("?" if dim is None else str(dim) for dim in shape)
    return f"{column.dtype or '?'} [{dims}]" + ("" if column.kind == "fixed" else f", {column.kind}")


def tensors(columns: Sequence[Column]) -> TensorDatasetSchema | None:
    """What MLflow's own code reads; None where it has no words for a column, and where NumPy is missing."""
    if find_spec("numpy") is None:
        return None
    from mlflow.data.schema import TensorDatasetSchema
    from mlflow.types import ColSpec, Schema, TensorSpec

    from safetensors_spark._files.numpy_dtypes import NUMPY, numpy_dtype

    specs: list[ColSpec | TensorSpec] = [
        TensorSpec(numpy_dtype(column.dtype), (-1, *(-1 if dim is None else dim for dim in shape)), column.name)
        for column in columns
        if column.dtype in NUMPY and (shape := column.sample_shape) is not None
    ]
    return TensorDatasetSchema(Schema(specs)) if specs and len(specs) == len(columns) else None
