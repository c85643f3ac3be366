"""A stage's operators on a window of rows, as plans of Daft over Arrow tables in memory.

Daft keeps the order of rows of such tables, and gets the fields alone that operators read. A filter only marks rows
until the window is done, so that what is dropped can be kept beside the output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark.factory._apply import check_fields, checked, columns_of, named, reasons_of
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._fields import (
    DROPPED_BECAUSE,
    DROPPED_BY,
    GENERATED_BY,
    REFINED_BY,
    with_name,
)
from safetensors_spark.factory._operator import Filter, Generator, NewRows, Operator, Refiner
from safetensors_spark.factory._runner import run_here


@dataclass
class Window:
    """What has become of a window's rows.

    Attributes:
        kept: the rows that are left.
        dropped: in their order, with the operator that dropped each, and why, and the fields they had then or since.
        rows_in: by operator, how many rows it got.
        rows_dropped: by operator.
    """

    kept: pa.Table
    dropped: list[pa.Table] = field(default_factory=list)
    rows_in: Counter[str] = field(default_factory=Counter)
    rows_dropped: Counter[str] = field(default_factory=Counter)


def run_window(table: pa.Table, operators: Sequence[Operator]) -> Window:
    """Run the operators, which are loaded, on the rows of a table."""
    window = Window(table)
    for makes_rows, some in groupby(operators, key=lambda operator: isinstance(operator, Generator)):
        if makes_rows:
            for operator in some:
                check_fields(operator, window.kept.column_names)
                window.rows_in[operator.id] += window.kept.num_rows
                window.kept = _generated(window.kept, operator)
        else:
            _run_segment(window, list(some))
    return window


def _generated(table: pa.Table, operator: Operator) -> pa.Table:
    batch = _batch(table.select(list(operator.reads)))
    with named(operator):
        found = operator.generate(batch)  # type: ignore[attr-defined]
    if isinstance(found, NewRows):
        parents = pa.array(found.parents, pa.int64())
        columns = checked(operator, found.columns, len(parents))
        # New rows stand behind the row that they are made of.
        order = pc.array_sort_indices(pc.add(parents, 0)) if len(parents) else parents
        origin = pa.concat_arrays([pa.array(range(table.num_rows), pa.int64()), parents.take(order)])
        places = pc.sort_indices(
            pa.table({"row": origin, "new": [False] * table.num_rows + [True] * len(parents)}),
            sort_keys=[("row", "ascending"), ("new", "ascending")],
        )
        made = {
            name: pa.concat_arrays([pa.nulls(table.num_rows, column.type), column.take(order)])
            for name, column in columns.items()
        }
        rows = table.take(origin.take(places))
        for name, column in made.items():
            rows = rows.append_column(name, column.take(places))
        is_new = pc.greater_equal(places, table.num_rows)
        return with_name(rows, GENERATED_BY, operator.id, is_new)
    columns = checked(operator, found, table.num_rows)
    for name, column in columns.items():
        table = table.append_column(name, column)
    return with_name(table, GENERATED_BY, operator.id)


def _run_segment(window: Window, operators: Sequence[Operator]) -> None:
    """Run operators that make no rows, as one plan of Daft."""
    import daft
    from daft.functions import to_struct

    run_here()

    table = window.kept
    names = list(table.column_names)
    inputs = {name for operator in operators for name in operator.reads if name in names}
    # Names with dots mean fields of structs to Daft.
    places = {name: f"f{number}" for number, name in enumerate(names)}
    plan = daft.from_arrow(
        pa.table(
            {places[name]: table.column(name) for name in names if name in inputs}
            | {"dropped": pa.nulls(table.num_rows, pa.string()), "row": pa.array(range(table.num_rows), pa.int64())}
        )
    )
    refined: list[str] = []
    for number, operator in enumerate(operators):
        check_fields(operator, names)
        reads = [daft.col(places[name]).alias(f"c{at}") for at, name in enumerate(operator.reads)]
        argument = to_struct(daft.col("dropped").alias("dropped"), *reads)
        count = _counting(window, operator)
        if isinstance(operator, Filter):
            call = daft.func.batch(return_dtype=daft.DataType.string())(_filtering(operator, count))
            plan = plan.with_column("dropped", call(argument))
            continue
        writes = {name: f"w{number}_{at}" for at, name in enumerate(operator.writes)}
        kind = pa.struct([pa.field(writes[name], of) for name, of in operator.writes.items()])
        call = daft.func.batch(return_dtype=daft.DataType.from_arrow_type(kind))(_making(operator, kind, count))
        plan = plan.with_column("made", call(argument))
        plan = plan.with_columns({place: plan["made"][place] for place in writes.values()}).exclude("made")
        if isinstance(operator, Refiner):
            refined.append(operator.id)
        places |= writes
        names += [name for name in writes if name not in names]
    found = plan.to_arrow()
    if not _in_order(found.column("row")):
        found = found.sort_by("row")
    _take(window, operators, names, places, found, refined)


def _take(
    window: Window,
    operators: Sequence[Operator],
    names: Sequence[str],
    places: dict[str, str],
    found: pa.Table,
    refined: Sequence[str],
) -> None:
    before = window.kept
    written = {name: kind for operator in operators for name, kind in operator.writes.items()}
    columns = {
        name: found.column(places[name]).cast(written[name]) if name in written else before.column(name)
        for name in names
    }
    whole = pa.table(columns) if columns else before
    for name in refined:
        whole = with_name(whole, REFINED_BY, name)
    dropped = found.column("dropped").combine_chunks()
    window.kept = whole.filter(pc.is_null(dropped))
    lost = whole.filter(pc.is_valid(dropped))
    if lost.num_rows:
        # An operator's id and its reason, divided by what neither has.
        told = [one.split(_DIVIDER, 1) for one in dropped.drop_null().to_pylist()]
        window.rows_dropped.update(name for name, _ in told)
        lost = lost.append_column(DROPPED_BY, pa.array([name for name, _ in told], pa.string()))
        lost = lost.append_column(DROPPED_BECAUSE, pa.array([reason for _, reason in told], pa.string()))
        window.dropped.append(lost)


_DIVIDER = "\x1f"


def _counting(window: Window, operator: Operator) -> Callable[[int], None]:
    def count(rows: int) -> None:
        window.rows_in[operator.id] += rows

    return count


def _filtering(operator: Filter, count: Callable[[int], None]) -> Callable[[Any], Any]:
    def call(packed: Any) -> pa.Array:
        batch, dropped, alive = _unpacked(operator, packed)
        count(batch.num_rows)
        with named(operator):
            reasons = reasons_of(operator, batch)
        told = pc.binary_join_element_wise(pa.scalar(operator.id), reasons, _DIVIDER)
        return told if alive is None else pc.coalesce(dropped, _spread(told, alive))

    return call


def _making(operator: Operator, kind: pa.StructType, count: Callable[[int], None]) -> Callable[[Any], Any]:
    def call(packed: Any) -> pa.Array:
        batch, _, alive = _unpacked(operator, packed)
        count(batch.num_rows)
        with named(operator):
            columns = list(columns_of(operator, batch).values())
        if alive is not None:
            columns = [_spread(column, alive) for column in columns]
        return pa.StructArray.from_arrays(columns, fields=list(kind))

    return call


def _unpacked(operator: Operator, packed: Any) -> tuple[pa.RecordBatch, pa.Array, pa.Array | None]:
    """The rows that an operator gets, which no filter has dropped; the reasons so far; and which rows they are."""
    struct = packed.to_arrow()
    dropped, *columns = struct.flatten()
    dropped = dropped.cast(pa.string())
    batch = pa.RecordBatch.from_arrays(columns, names=list(operator.reads)) if columns else None
    if batch is None:
        raise ContractError(f"{operator.id} reads no field, so it cannot know of any row.")
    if dropped.null_count == len(dropped):
        return batch, dropped, None
    alive = pc.is_null(dropped)
    return batch.filter(alive), dropped, alive


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
