"""The keys of a deduplicator, held to their contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import counted
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._operator import Deduplicator, Keys
from safetensors_spark.pipeline._failures import with_note


@contextmanager
def naming(operator: Deduplicator) -> Iterator[None]:
    """What is raised in the block says that it is of this operator."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:
        with_note(error, f"In operator `{operator.id}`")
        raise


def keys_of(operator: Deduplicator, batch: pa.RecordBatch) -> Keys:
    """The keys of a batch's rows. Raises `ContractError` for what are none."""
    with naming(operator):
        found: Any = operator.keys(batch)
    if not isinstance(found, Keys):
        raise ContractError(f"{operator.id} returned a {type(found).__name__}, expected Keys.")
    rows, keys = _integers(operator, "rows", found.rows, np.int64), _integers(operator, "keys", found.keys, np.uint64)
    if not keys.size:
        keys = keys.reshape(0, 2)
    if rows.ndim != 1 or keys.shape != (len(rows), 2):
        raise ContractError(
            f"{operator.id} returned rows of shape {list(rows.shape)} and keys of shape {list(keys.shape)}, expected "
            "a row of each key, and keys of two numbers of 64 bits."
        )
    if len(rows) and not 0 <= rows.min() <= rows.max() < batch.num_rows:
        raise ContractError(
            f"{operator.id} returned keys of row {rows.min() if rows.min() < 0 else rows.max()}: each is of a row of "
            f"the batch, from 0 to {batch.num_rows - 1}."
        )
    if found.signatures is not None and len(found.signatures) != batch.num_rows:
        raise ContractError(
            f"{operator.id} returned {counted(len(found.signatures), 'signature')} for "
            f"{counted(batch.num_rows, 'row')}: each row has one."
        )
    return Keys(rows, keys, found.signatures)


def _integers(operator: Deduplicator, name: str, values: Any, kind: Any) -> Any:
    """The values as integers of a type, none of which is changed."""
    try:
        found = np.asarray(values)
        if found.size and (found.dtype.kind not in "iu" or (kind == np.uint64 and found.min() < 0)):
            raise ValueError(f"they are {found.dtype}")
        return found.astype(kind)
    except (ValueError, TypeError, OverflowError) as error:
        raise ContractError(
            f"{operator.id} returned {name} that are no {np.dtype(kind).name}: {str(error).rstrip('.')}."
        ) from error
