"""A stage's operators on a window of rows, as plans of Daft over Arrow tables in memory.

Daft keeps the order of rows of such tables, and gets the fields alone that operators read. A filter only marks rows
until the window is done, so that what is dropped can be kept beside the output.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark.factory._apply import Outcome, check_fields, outcome
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._fields import (
    DROPPED_BECAUSE,
    DROPPED_BY,
    GENERATED_BY,
    REFINED_BY,
    with_name,
)
from safetensors_spark.factory._operator import Filter, Generator, Operator, Refiner
from safetensors_spark.factory._runner import run_here

# Rows of a plan. Daft divides more than 131,072, and calls a function for several parts at a time, which models and
# counts need not bear.
_ROWS = 65_536

# Calls an operator with a batch, here or in an actor, as `outcome` does.
Call = Callable[[Operator, pa.RecordBatch, bool], Outcome]


@dataclass
class Window:
    """What has become of a window's rows.

    Attributes:
        kept: the rows that are left.
        answer: calls an operator with a batch.
        dropped: in their order, with the operator that dropped each, and why, and the fields they had then.
        rows_in: by operator, how many rows it got.
        rows_dropped: by operator.
        seconds: by operator, in its calls.
        buckets: by operator, how many rows a sample has kept (true) and dropped of each bucket.
    """

    kept: pa.Table
    answer: Call
    dropped: list[pa.Table] = field(default_factory=list)
    rows_in: Counter[str] = field(default_factory=Counter)
    rows_dropped: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    buckets: dict[str, Counter[tuple[str, bool]]] = field(default_factory=dict)

    def call(self, operator: Operator, batch: pa.RecordBatch, quarantine: bool) -> Outcome:
        """Call an operator, if there are rows, and count what it does."""
        if not batch.num_rows:
            return Outcome(
                pa.array([], pa.string()), {name: pa.array([], kind) for name, kind in operator.writes.items()}
            )
        started = time.monotonic()
        found = self.answer(operator, batch, quarantine)
        self.seconds[operator.id] += time.monotonic() - started
        self.rows_in[operator.id] += batch.num_rows
        if found.buckets:
            self.buckets.setdefault(operator.id, Counter()).update(found.buckets)
        return found


def run_window(table: pa.Table, operators: Sequence[Operator], quarantine: bool, call: Call = outcome) -> Window:
    """Run the operators, which are loaded, on the rows of a table.

    Args:
        quarantine: drop rows for which an operator raises.
        call: calls one with a batch.
    """
    window = Window(table, call)
    for makes_rows, some in groupby(operators, key=lambda operator: isinstance(operator, Generator)):
        if makes_rows:
            for operator in some:
                _generate(window, operator, quarantine)
        elif isinstance(first := (segment := list(some))[0], Filter) and len(segment) == 1:
            _filter(window, first, quarantine)
        else:
            _run_parts(window, segment, quarantine)
    return window


def _filter(window: Window, operator: Filter, quarantine: bool) -> None:
    """Run a filter alone, such as that of duplicates, which needs no plan."""
    table = window.kept
    check_fields(operator, table.column_names)
    _check_reads(operator)
    reasons = window.call(operator, _batch(table.select(list(operator.reads))), quarantine).reasons
    because = reasons.drop_null()
    _drop(window, table.filter(pc.is_valid(reasons)), [operator.id] * len(because), because)
    window.kept = table.filter(pc.is_null(reasons))


def _check_reads(operator: Operator) -> None:
    if not operator.reads:
        raise ContractError(f"{operator.id} reads no field, so it cannot know of any row.")


def _generate(window: Window, operator: Operator, quarantine: bool) -> None:
    table = window.kept
    check_fields(operator, table.column_names)
    found = window.call(operator, _batch(table.select(list(operator.reads))), quarantine)
    has_failed, reasons = pc.is_valid(found.reasons), found.reasons.drop_null()
    _drop(window, table.filter(has_failed), [operator.id] * len(reasons), reasons)
    if found.columns is None:
        columns = {name: pa.nulls(table.num_rows, kind) for name, kind in operator.writes.items()}
        rows, is_new, stays = table, None, pc.invert(has_failed)
    elif found.parents is None:
        rows, is_new, columns, stays = table, None, found.columns, pc.invert(has_failed)
    else:
        rows, is_new, columns, places = _with_new_rows(table, found.parents, found.columns)
        stays = pc.invert(has_failed.take(places))
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    window.kept = with_name(rows, GENERATED_BY, operator.id, is_new).filter(stays)


def _with_new_rows(
    table: pa.Table, parents: pa.Array, columns: dict[str, pa.Array]
) -> tuple[pa.Table, pa.Array, dict[str, pa.Array], pa.Array]:
    """The table with new rows behind those that they are made of; which are new; their columns, null in the others;
    and for each row the number of the one that it is made of, or was.
    """
    order = pc.array_sort_indices(parents)
    origin = pa.concat_arrays([pa.array(range(table.num_rows), pa.int64()), parents.take(order)])
    places = pc.sort_indices(
        pa.table({"row": origin, "new": [False] * table.num_rows + [True] * len(parents)}),
        sort_keys=[("row", "ascending"), ("new", "ascending")],
    )
    made = {
        name: pa.concat_arrays([pa.nulls(table.num_rows, column.type), column.take(order)]).take(places)
        for name, column in columns.items()
    }
    origin = origin.take(places)
    return table.take(origin), pc.greater_equal(places, table.num_rows), made, origin


def _run_parts(window: Window, operators: Sequence[Operator], quarantine: bool) -> None:
    table, kept = window.kept, []
    for begin in range(0, max(1, table.num_rows), _ROWS):
        window.kept = table.slice(begin, _ROWS)
        _run_segment(window, operators, quarantine)
        kept.append(window.kept)
    window.kept = pa.concat_tables(kept)


def _run_segment(window: Window, operators: Sequence[Operator], quarantine: bool) -> None:
    """Run operators that make no rows, as one plan of Daft."""
    import daft
    from daft.functions import to_struct

    run_here()

    table = window.kept
    names = list(table.column_names)
    inputs = {name for operator in operators for name in (*operator.reads, *_before(operator)) if name in names}
    # Names with dots mean fields of structs to Daft.
    places = {name: f"f{number}" for number, name in enumerate(names)}
    plan = daft.from_arrow(
        pa.table(
            {places[name]: table.column(name) for name in names if name in inputs}
            | {"dropped": pa.nulls(table.num_rows, pa.string()), "row": pa.array(range(table.num_rows), pa.int64())}
        )
    )
    for number, operator in enumerate(operators):
        check_fields(operator, names)
        fields = [*operator.reads, *_before(operator)]
        some = [daft.col(places[name]).alias(f"c{at}") for at, name in enumerate(fields)]
        writes = {name: f"w{number}_{at}" for at, name in enumerate(operator.writes)}
        kind = pa.struct(
            [pa.field("dropped", pa.string()), *(pa.field(writes[name], of) for name, of in operator.writes.items())]
        )
        call = daft.func.batch(return_dtype=daft.DataType.from_arrow_type(kind))(
            _calling(operator, kind, window, quarantine)
        )
        plan = plan.with_column("made", call(to_struct(daft.col("dropped").alias("dropped"), *some)))
        plan = plan.with_columns({name: plan["made"][name] for name in ("dropped", *writes.values())}).exclude("made")
        places |= writes
        names += [name for name in writes if name not in names]
    found = plan.to_arrow()
    if not _in_order(found.column("row")):
        found = found.sort_by("row")
    _take(window, operators, names, places, found)


def _take(
    window: Window, operators: Sequence[Operator], names: Sequence[str], places: dict[str, str], found: pa.Table
) -> None:
    before = window.kept
    written = {name: kind for operator in operators for name, kind in operator.writes.items()}
    columns = {
        name: found.column(places[name]).cast(written[name]) if name in written else before.column(name)
        for name in names
    }
    whole = pa.table(columns) if columns else before
    dropped = found.column("dropped").combine_chunks()
    # An operator's id and its reason, divided by what neither has.
    told = [one and one.split(_DIVIDER, 1) for one in dropped.to_pylist()]
    order = {operator.id: number for number, operator in enumerate(operators)}
    for operator in operators:
        if isinstance(operator, Refiner):
            is_refined = [one is None or order[one[0]] > order[operator.id] for one in told]
            whole = with_name(whole, REFINED_BY, operator.id, pa.array(is_refined, pa.bool_()))
    window.kept = whole.filter(pc.is_null(dropped))
    there = [one for one in told if one is not None]
    reasons = pa.array([reason for _, reason in there], pa.string())
    _drop(window, whole.filter(pc.is_valid(dropped)), [name for name, _ in there], reasons)


def _drop(window: Window, rows: pa.Table, by: Sequence[str], because: pa.Array) -> None:
    """Keep rows with the id of the operator that has dropped each, and its reason."""
    if not rows.num_rows:
        return
    window.rows_dropped.update(by)
    rows = rows.append_column(DROPPED_BY, pa.array(by, pa.string()))
    window.dropped.append(rows.append_column(DROPPED_BECAUSE, because))


_DIVIDER = "\x1f"


def _before(operator: Operator) -> Sequence[str]:
    """The fields whose values an operator gets beside those that it reads, since dropped rows keep them."""
    return tuple(operator.writes) if isinstance(operator, Refiner) else ()


class _Here:
    """What a function of Daft uses in this process. Daft looks whether the function can be pickled, which would copy
    the rows of the window, and models.
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        return _Here, ()


def _calling(operator: Operator, kind: pa.StructType, window: Window, quarantine: bool) -> Callable[[Any], Any]:
    """A function of Daft: from rows, and why each was dropped, to what the operator writes, and why each is dropped."""
    here = _Here(operator, window)

    def call(packed: Any) -> pa.Array:
        operator, window = here.values
        struct = packed.to_arrow()
        dropped, *columns = struct.flatten()
        dropped = dropped.cast(pa.string())
        reads = list(operator.reads)
        _check_reads(operator)
        batch = pa.RecordBatch.from_arrays(columns[: len(reads)], names=reads)
        alive = pc.is_null(dropped)
        is_whole = dropped.null_count == len(dropped)
        if not is_whole:
            batch = batch.filter(alive)
        found = window.call(operator, batch, quarantine)
        told = pc.binary_join_element_wise(pa.scalar(operator.id), found.reasons, _DIVIDER)
        made = [pa.nulls(batch.num_rows, of) for of in operator.writes.values()]
        if found.columns is not None:
            made = list(found.columns.values())
        if not is_whole:
            told = pc.coalesce(dropped, _spread(told, alive))
            made = [_spread(column, alive) for column in made]
        for at, old in enumerate(columns[len(reads) :]):
            made[at] = _where(pc.is_null(told), made[at], old)
        return pa.StructArray.from_arrays([told, *made], fields=list(kind))

    return call


def _where(is_new: pa.Array, new: pa.Array, old: pa.Array) -> pa.Array:
    """The new values at some rows, the old ones at others. `if_else` of Arrow does not know all types."""
    if pc.all(is_new).as_py() is not False:
        return new
    if old.type != new.type:
        try:
            old = old.cast(new.type)
        except pa.ArrowException:
            # A refiner has made another type of it.
            return new
    rows = pa.array(range(len(new)), pa.int64())
    return pa.concat_arrays([new, old]).take(pc.add(rows, pc.if_else(is_new, 0, len(new))))


def _spread(column: pa.Array, alive: pa.Array) -> pa.Array:
    """The values at the rows that are alive, and null at others."""
    places = pc.if_else(alive, pc.subtract(pc.cumulative_sum(alive.cast(pa.int64())), 1), None)
    return column.take(places)


def _batch(table: pa.Table) -> pa.RecordBatch:
    (batch,) = _batches(table.combine_chunks())
    return batch


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    found = table.to_batches()
    yield from found or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def _in_order(rows: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(rows, pa.array(range(len(rows)), pa.int64()))).as_py() or not len(rows))
