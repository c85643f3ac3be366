"""Tables of Arrow as rows that can be written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidWriteError


def writable(batch: Any) -> Any:
    """The batch without what `DatasetWriter` does not take: images of Hugging Face become their bytes."""
    import pyarrow as pa  # type: ignore[import-untyped]

    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_struct(column.type):
            place = column.type.get_field_index("bytes")
            if place < 0:
                raise InvalidWriteError(
                    f"Column `{name}` is {column.type}, which is not a tensor. Choose other columns with `--columns`."
                )
            # Flattened, what a null struct hides is null too.
            column = column.flatten()[place]
        columns[name] = column
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def ragged_in(batch: Any) -> Collection[str]:
    """The columns whose lists differ in length."""
    return [name for name, column in zip(batch.schema.names, batch.columns, strict=True) if _differs(column)]


def _differs(column: Any) -> bool:
    import pyarrow as pa

    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return False
    lengths = np.diff(column.offsets.to_numpy())
    return bool(len(lengths) and (lengths != lengths[0]).any())
