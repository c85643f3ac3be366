"""One operator on one batch, held to the contract of its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark._errors import counted
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._fields import PREFIX
from safetensors_spark.factory._operator import Evaluator, Filter, Generator, NewRows, Operator, Refiner, Score
from safetensors_spark.pipeline._failures import is_temporary, with_note

# Of the text of an error.
_LONGEST = 1000


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


@dataclass(frozen=True)
class Outcome:
    """What an operator has made of a batch.

    Attributes:
        reasons: for each row why it is dropped, as text; null for one that stays.
        columns: what it writes, of the rows of the batch or of new ones; None if it failed for each row.
        parents: of each new row, the number of the row that it is made of; None if there are none.
        buckets: of a sample, how many rows it has kept (true) and dropped, by bucket.
    """

    reasons: pa.Array
    columns: dict[str, pa.Array] | None
    parents: pa.Array | None = None
    buckets: Counter[tuple[str, bool]] = field(default_factory=Counter)


def outcome(operator: Operator, batch: pa.RecordBatch, quarantine: bool) -> Outcome:
    """Call the operator. What it raises says which one it was.

    Args:
        quarantine: rows for which it raises, which are found by halves, are dropped with the error as the reason.

    Raises `ContractError` if it returns what its kind may not return.
    """
    rows = batch.num_rows
    try:
        try:
            return _called(operator, batch)
        except StopIteration as error:
            # Daft would wait for ever: no future may raise it.
            raise RuntimeError("StopIteration was raised, which ends a loop and tells no error") from error
    except ContractError:
        raise
    except Exception as error:
        # A lost connection is not the row's fault, nor is a lack of memory that of one row.
        is_of_rows = not is_temporary(error) and not isinstance(error, MemoryError) and rows > 0
        if not quarantine or not is_of_rows:
            with_note(error, f"In operator `{operator.id}`")
            raise
        if rows == 1:
            return Outcome(pa.array([f"raised {type(error).__name__}: {error}"[:_LONGEST]], pa.string()), None)
    half = rows // 2
    return _joined(
        operator,
        outcome(operator, batch.slice(0, half), quarantine),
        outcome(operator, batch.slice(half), quarantine),
    )


def _joined(operator: Operator, first: Outcome, second: Outcome) -> Outcome:
    reasons = pa.concat_arrays([first.reasons, second.reasons])
    there = [one for one in (first, second) if one.columns is not None]
    buckets = first.buckets + second.buckets
    if not there:
        return Outcome(reasons, None, buckets=buckets)
    if len({one.parents is None for one in there}) > 1:
        raise ContractError(f"{operator.id} returned new rows for some rows, and columns for others.")
    parts = [_columns(operator, one, there[0].parents is None) for one in (first, second)]
    columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in operator.writes}
    if there[0].parents is None:
        return Outcome(reasons, columns, buckets=buckets)
    none = pa.array([], pa.int64())
    before, behind = (none if one.parents is None else one.parents for one in (first, second))
    return Outcome(reasons, columns, pa.concat_arrays([before, pc.add(behind, len(first.reasons))]))


def _columns(operator: Operator, found: Outcome, of_rows: bool) -> dict[str, pa.Array]:
    """Its columns; where it has none nulls for its rows, or no new rows."""
    if found.columns is not None:
        return found.columns
    return {name: pa.nulls(len(found.reasons) if of_rows else 0, kind) for name, kind in operator.writes.items()}


def _called(operator: Operator, batch: pa.RecordBatch) -> Outcome:
    none = pa.nulls(batch.num_rows, pa.string())
    match operator:
        case Filter():
            reasons = _reasons_of(operator, batch)
            return Outcome(reasons, {}, buckets=_buckets_of(operator, batch, reasons))
        case Score():
            found: Any = operator.score(batch)
        case Evaluator():
            found = operator.evaluate(batch)
        case Refiner():
            found = operator.refine(batch)
        case Generator():
            found = operator.generate(batch)
        case _:
            raise ContractError(f"{operator.id} is a {type(operator).__name__}, which is of none of the five kinds.")
    if isinstance(operator, Generator) and isinstance(found, NewRows):
        parents = _parents(operator, found.parents, batch.num_rows)
        return Outcome(none, _checked(operator, found.columns, len(parents)), parents)
    if isinstance(found, NewRows):
        raise ContractError(
            f"{operator.id} returned new rows: a {operator.kind} keeps the rows, a generator makes new."
        )
    return Outcome(none, _checked(operator, found, batch.num_rows))


def _parents(operator: Operator, values: Any, rows: int) -> pa.Array:
    parents = _array(operator, "parents", values, pa.int64())
    if parents.null_count or (len(parents) and not 0 <= pc.min(parents).as_py() <= pc.max(parents).as_py() < rows):
        raise ContractError(
            f"{operator.id} returned parents that are no rows: each is the number of a row of the batch, from 0 to "
            f"{rows - 1}."
        )
    return parents


def _checked(operator: Operator, found: Any, rows: int) -> dict[str, pa.Array]:
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
        if _is_of_integers(kind) and not hasattr(values, "dtype"):
            # Arrow would cut fractions off.
            return pa.array(values).cast(kind)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"{operator.id} returned values of `{name}` that are no {kind}: {error}.") from error


def _is_of_integers(kind: pa.DataType) -> bool:
    types = pa.types
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind))


def _reasons_of(operator: Filter, batch: pa.RecordBatch) -> pa.Array:
    """For each row why a filter drops it; null for one that it keeps."""
    found = operator.reasons(batch)
    if isinstance(found, Mapping | pa.Table | pa.RecordBatch):
        raise ContractError(
            f"{operator.id} returned a {type(found).__name__}: a filter returns one reason for each row."
        )
    if isinstance(found, pa.Array | pa.ChunkedArray) and not _is_of_text(found.type):
        raise ContractError(
            f"{operator.id} returned {found.type} for reasons: a filter says of each row why it is dropped, as text, "
            "or null for one that stays."
        )
    reasons = _array(operator, "reasons", found, pa.string())
    if len(reasons) != batch.num_rows:
        raise ContractError(
            f"{operator.id} returned {counted(len(reasons), 'reason')} for {counted(batch.num_rows, 'row')}: a filter "
            "says of each row why it is dropped, or null."
        )
    return reasons


def _buckets_of(operator: Filter, batch: pa.RecordBatch, reasons: pa.Array) -> Counter[tuple[str, bool]]:
    """How many rows a sample has kept and dropped of each bucket; none of another filter."""
    if not operator.quotas:
        return Counter()
    names = list(operator.bucket_of(batch))
    if len(names) != batch.num_rows or not set(names) <= set(operator.quotas):
        raise ContractError(
            f"{operator.id} returned {counted(len(names), 'bucket')} for {counted(batch.num_rows, 'row')}: a sample "
            f"tells one of {', '.join(operator.quotas)} of each row."
        )
    return Counter(zip(names, pc.is_null(reasons).to_pylist(), strict=True))


def _is_of_text(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_null, types.is_dictionary)
    )
