"""Filters by expressions, and selections of columns, of records as Python has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._expression import Expr, keeps_of
from safetensors_spark.pipeline._formats.reading import Bad, raise_error
from safetensors_spark.pipeline._operations import Load


def record_filter(expression: Expr, bad: Bad = raise_error) -> Callable[[Any], Any]:
    """Whether a record passes. One for which that cannot be told is bad, and does not."""
    keeps = keeps_of(expression)

    def passes(record: Any) -> Any:
        try:
            return keeps(record)
        except AttributeError as error:
            if hasattr(record, "get"):
                bad(record, error)
            else:
                what = f"`filter {expression}` needs records with columns, but a row is a {type(record).__name__}"
                bad(record, PipelineError(what))
        except Exception as error:
            bad(record, error)
        return False

    return passes


def selected(columns: tuple[str, ...], record: Any) -> dict[str, Any]:
    """The record with these columns alone. Raises `PipelineError` for one that it does not have."""
    try:
        return {name: record[name] for name in columns}
    except (KeyError, TypeError, IndexError):
        if not isinstance(record, dict):
            raise PipelineError(f"select needs records with columns, but a row is a {type(record).__name__}") from None
        absent = next(name for name in columns if name not in record)
        raise PipelineError(
            f"select: a record has no column `{absent}`; it has {', '.join(map(str, record)) or 'none'}"
        ) from None


def loaded(records: Iterable[Any], load: Load, bad: Bad) -> Iterator[Any]:
    """What `load` asks for of a file's records. One that fails is bad; those behind it are not lost."""
    if load.filter is not None:
        records = filter(record_filter(load.filter, bad), records)
    if load.columns is None:
        return iter(records)
    return _selected(load.columns, records, bad)


def _selected(columns: tuple[str, ...], records: Iterable[Any], bad: Bad) -> Iterator[Any]:
    for record in records:
        try:
            found = selected(columns, record)
        except PipelineError as error:
            bad(record, error)
            continue
        yield found
