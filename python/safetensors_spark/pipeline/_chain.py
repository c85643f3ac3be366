"""Operations of rows, one after the other, as one iterator over the rows of a shard."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark.pipeline._formats.readers import read
from safetensors_spark.pipeline._formats.reading import Bad, raise_error
from safetensors_spark.pipeline._formats.selecting import record_filter, selected
from safetensors_spark.pipeline._operations import (
    Filter,
    FilterExpression,
    FlatMap,
    Load,
    Map,
    MapShard,
    RowOperation,
    Select,
    ShardInfo,
    TakePerShard,
    Window,
    WindowBy,
)
from safetensors_spark.pipeline._source import version_of_file


class StoppedError(BaseException):
    """Nobody wants the shard any more. It is no error of a row, nor of a function that catches every `Exception`."""


@dataclass
class Place:
    """Where a shard's work has come to: how many rows were read."""

    rows: int = 0
    loaded: int = 0


@dataclass
class Chain:
    """How a shard's rows pass operations.

    Attributes:
        bad: gets rows for which an operation fails; None if the first of them ends the shard.
        stop: ends it at the next row.
        place: for errors and reports.
        known: files whose versions the shard's name tells.
        files: gets those that rows name beside these, with their versions.
    """

    info: ShardInfo
    bad: Callable[[RowOperation, Any, Exception], None] | None = None
    stop: threading.Event | None = None
    place: Place = field(default_factory=Place)
    known: frozenset[str] = frozenset()
    files: dict[str, str] = field(default_factory=dict)

    def run(self, rows: Iterable[Any], operations: Sequence[RowOperation]) -> Iterator[Any]:
        """What the operations make of the rows."""
        rows = self._counted(rows)
        for operation in operations:
            rows = self._guarded(rows, operation) if self.bad is not None else self._step(rows, operation)
        return iter(rows)

    def _counted(self, rows: Iterable[Any]) -> Iterator[Any]:
        place, stop = self.place, self.stop
        for row in rows:
            place.rows += 1
            if stop is not None and stop.is_set():
                raise StoppedError
            yield row

    def _step(self, rows: Iterable[Any], operation: RowOperation) -> Iterable[Any]:
        # What itertools has costs no step of the interpreter for each row.
        match operation:
            case Map(function):
                return _to_the_end(operation, partial(map, function), rows)
            case Filter(function):
                return _to_the_end(operation, partial(filter, function), rows)
            case FilterExpression(expression):
                return filter(record_filter(expression), rows)
            case FlatMap(function):
                found = _to_the_end(operation, partial(map, function), rows)
                return itertools.chain.from_iterable(found)
            case Select(columns):
                return map(partial(selected, columns), rows)
            case Load():
                return self._loaded(itertools.chain.from_iterable(map(partial(self._load, operation), rows)))
        return self._of_shard(rows, operation)

    def _of_shard(self, rows: Iterable[Any], operation: RowOperation) -> Iterable[Any]:
        """Operations that know more than one row."""
        match operation:
            case TakePerShard(count):
                return itertools.islice(rows, count)
            case Window(size):
                return _windows(iter(rows), size)
            case WindowBy(fold, initial):
                return _windows_by(rows, fold, initial)
            case MapShard(function):
                return function(iter(rows), self.info)
        raise AssertionError(operation)

    def _load(self, load: Load, path: Any, bad: Bad = raise_error) -> Iterator[Any]:
        if isinstance(path, str | os.PathLike) and (name := os.fspath(path)) not in self.known:
            self.files[name] = version_of_file(name)
        return read(path, load, bad)

    def _loaded(self, records: Iterable[Any]) -> Iterator[Any]:
        """The same records, counted: what an error names is a record, not the file that it is in."""
        place, stop = self.place, self.stop
        for record in records:
            place.loaded += 1
            if stop is not None and stop.is_set():
                raise StoppedError
            yield record

    def _guarded(self, rows: Iterable[Any], operation: RowOperation) -> Iterable[Any]:
        """As `_step`, but a row that fails is kept apart."""
        if isinstance(operation, TakePerShard | Window | WindowBy | MapShard):
            return self._of_shard(rows, operation)
        return self._rows_that_pass(rows, operation)

    def _rows_that_pass(self, rows: Iterable[Any], operation: RowOperation) -> Iterator[Any]:
        assert self.bad is not None
        bad = partial(self.bad, operation)
        for row in rows:
            try:
                match operation:
                    case Load():
                        found: Iterable[Any] = self._loaded(self._load(operation, row, bad))
                    case _:
                        found = self._step((row,), operation)
                iterator = iter(found)
            except Exception as error:
                bad(row, error)
                continue
            yield from _until_bad(iterator, row, bad)


def _to_the_end(
    operation: RowOperation, make: Callable[[Iterable[Any]], Iterable[Any]], rows: Iterable[Any]
) -> Iterable[Any]:
    """What is made of rows. A function that raises StopIteration would end them, and nobody would see it."""
    end = _End()
    return itertools.chain(make(itertools.chain(rows, end)), _checked(end, operation))


class _End(Iterator[Any]):
    """No row: it knows whether it was asked for one."""

    is_reached = False

    def __next__(self) -> Any:
        self.is_reached = True
        raise StopIteration


def _checked(end: _End, operation: RowOperation) -> Iterator[Any]:
    if not end.is_reached:
        raise PipelineError(
            f"{operation}: the function raised StopIteration, as `next(...)` does of an iterator that is empty. Give "
            "`next` a default, or catch it."
        )
    yield from ()


def _until_bad(iterator: Iterator[Any], row: Any, bad: Bad) -> Iterator[Any]:
    while True:
        try:
            found = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            bad(row, error)
            return
        yield found


def _windows(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while window := list(itertools.islice(rows, size)):
        yield window


def _windows_by(rows: Iterable[Any], fold: Callable[[Any, Any], tuple[bool, Any]], initial: Any) -> Iterator[list[Any]]:
    window: list[Any] = []
    state = deepcopy(initial)
    for row in rows:
        belongs, state = fold(state, row)
        if not belongs and window:
            yield window
            window = []
            # A row that does not belong even to an empty list begins one all the same.
            _, state = fold(deepcopy(initial), row)
        window.append(row)
    if window:
        yield window
