"""One operator on one batch, held to the contract of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import counted
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._fields import PREFIX
from safetensors_spark.factory._operator import Evaluator, Filter, Generator, NewRows, Operator, Refiner, Score
from safetensors_spark.pipeline._failures import with_note


def check_fields(operator: Operator, fields: Sequence[str]) -> None:
    """Raise `ContractError` if the operator cannot run on rows of these fields."""
    for name in operator.reads:
        if name not in fields:
            raise ContractError(f"{operator.id} reads `{name}`, but rows have {', '.join(fields) or 'no fields'}.")
    for name in operator.writes:
        if isinstance(operator, Filter):
            raise ContractError(f"{operator.id} writes `{name}`: a filter adds no field. Make it a score.")
        if isinstance(operator, Refiner):
            if name not in fields:
                raise ContractError(
                    f"{operator.id} writes `{name}`, which rows do not have: a refiner changes fields that are there, "
                    "and a generator makes new ones."
                )
        elif name in fields:
            raise ContractError(
                f"{operator.id} writes `{name}`, which rows have already: a {operator.kind} adds new fields. Give it "
                "another name, or make it a refiner."
            )
        if isinstance(operator, Evaluator):
            if not name.startswith(("eval.", f"{PREFIX}eval_")):
                raise ContractError(f"{operator.id} writes `{name}`: an evaluator's fields begin with `eval.`.")
        elif name.startswith(PREFIX):
            raise ContractError(f"{operator.id} writes `{name}`, but fields of `{PREFIX}` are the factory's own.")


@contextmanager
def named(operator: Operator) -> Iterator[None]:
    """What the operator raises says which one it was."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:
        with_note(error, f"In operator `{operator.id}`")
        raise


def columns_of(operator: Operator, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns that a score, an evaluator, a refiner or a generator of fields makes of a batch."""
    found = _called(operator, batch)
    if isinstance(found, NewRows):
        raise ContractError(f"{operator.id} returned new rows where columns were expected.")
    return checked(operator, found, batch.num_rows)


def _called(operator: Operator, batch: pa.RecordBatch) -> Any:
    match operator:
        case Score():
            return operator.score(batch)
        case Evaluator():
            return operator.evaluate(batch)
        case Refiner():
            return operator.refine(batch)
        case Generator():
            return operator.generate(batch)
    raise ContractError(f"{operator.id} is a {type(operator).__name__}, which is of none of the five kinds.")


def checked(operator: Operator, found: Any, rows: int) -> dict[str, pa.Array]:
    """What an operator has returned, if it is a column of each declared field. Raises `ContractError` if not."""
    if not isinstance(found, Mapping):
        raise ContractError(f"{operator.id} returned a {type(found).__name__}, expected columns by name.")
    for name in found:
        if name not in operator.writes:
            raise ContractError(
                f"{operator.id} returned the field `{name}`, which it does not declare: `writes` has "
                f"{', '.join(operator.writes) or 'none'}."
            )
    columns = {}
    for name, kind in operator.writes.items():
        if name not in found:
            raise ContractError(f"{operator.id} returned no `{name}`, which it declares.")
        column = _array(operator, name, found[name], kind)
        if len(column) != rows:
            raise ContractError(
                f"{operator.id} returned {counted(len(column), 'value')} of `{name}` for {counted(rows, 'row')}: a "
                f"{operator.kind} keeps every row."
            )
        columns[name] = column
    return columns


def _array(operator: Operator, name: str, values: Any, kind: pa.DataType) -> pa.Array:
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            return values if values.type == kind else values.cast(kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{operator.id} returned values of `{name}` that are no {kind}: {error}.") from error


def reasons_of(operator: Filter, batch: pa.RecordBatch) -> pa.Array:
    """For each row why a filter drops it; null for one that it keeps."""
    found = operator.reasons(batch)
    if isinstance(found, Mapping | pa.Table | pa.RecordBatch):
        raise ContractError(
            f"{operator.id} returned a {type(found).__name__}: a filter returns one reason for each row."
        )
    reasons = _array(operator, "reasons", found, pa.string())
    if len(reasons) != batch.num_rows:
        raise ContractError(
            f"{operator.id} returned {counted(len(reasons), 'reason')} for {counted(batch.num_rows, 'row')}: a filter "
            "says of each row why it is dropped, or null."
        )
    return reasons
