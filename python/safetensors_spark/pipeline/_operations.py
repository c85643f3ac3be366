"""What a pipeline does, as data: planners look at it, and tasks run it.

An operation of rows works on each shard alone. An exchange needs rows of several shards, so a stage ends before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from safetensors_spark.pipeline._expression import Expr


@dataclass(frozen=True)
class ShardInfo:
    """The shard that a function of `map_shard` works on: its number from 0, and how many there are."""

    shard_idx: int
    total_shards: int


@dataclass(frozen=True)
class Map:
    function: Callable[[Any], Any]

    def __str__(self) -> str:
        return f"map {name_of(self.function)}"


@dataclass(frozen=True)
class FlatMap:
    function: Callable[[Any], Iterable[Any]]

    def __str__(self) -> str:
        return f"flat_map {name_of(self.function)}"


@dataclass(frozen=True)
class Filter:
    """Keeps the rows for which a function is true."""

    function: Callable[[Any], Any]

    def __str__(self) -> str:
        return f"filter {name_of(self.function)}"


@dataclass(frozen=True)
class FilterExpression:
    """Keeps the records for which an expression is true; neither false nor null will do."""

    expression: Expr

    def __str__(self) -> str:
        return f"filter {self.expression}"


@dataclass(frozen=True)
class Select:
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"select {', '.join(self.columns)}"


@dataclass(frozen=True)
class TakePerShard:
    count: int

    def __str__(self) -> str:
        return f"take {self.count} per shard"


@dataclass(frozen=True)
class Window:
    """Lists of up to so many rows."""

    size: int

    def __str__(self) -> str:
        return f"window {self.size}"


@dataclass(frozen=True)
class WindowBy:
    """Lists of rows; `fold(state, row)` says whether the row still belongs to the list, and the next state."""

    fold: Callable[[Any, Any], tuple[bool, Any]]
    initial: Any

    def __str__(self) -> str:
        return f"window_by {name_of(self.fold)}"


@dataclass(frozen=True)
class MapShard:
    function: Callable[[Iterator[Any], ShardInfo], Iterable[Any]]

    def __str__(self) -> str:
        return f"map_shard {name_of(self.function)}"


@dataclass(frozen=True)
class Load:
    """Records of the files whose paths the rows are.

    Attributes:
        format: `file` for the one that a path's suffix tells.
        columns: those to read; None for all.
        filter: reads no other records.
        options: what only the format knows.
    """

    format: str
    columns: tuple[str, ...] | None = None
    filter: Expr | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        columns = "" if self.columns is None else f" columns {', '.join(self.columns) or 'none'}"
        rows = "" if self.filter is None else f" where {self.filter}"
        return f"load {self.format}{columns}{rows}"


@dataclass(frozen=True)
class Write:
    """A file of each shard, whose path is what remains of the rows.

    Attributes:
        pattern: has `{shard}`, `{total}` and `{basename}`; or a function of shard and total.
        skip_existing: leave a file as it is, whatever it holds.
        options: what only the format knows.
    """

    format: str
    pattern: str | Callable[[int, int], str]
    skip_existing: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        place = self.pattern if isinstance(self.pattern, str) else name_of(self.pattern)
        return f"write {self.format} {place}"


@dataclass(frozen=True)
class GroupBy:
    """Rows of equal keys, in one shard, reduced together."""

    key: Callable[[Any], Any]
    reducer: Callable[[Any, Iterator[Any]], Any]
    sort_by: Callable[[Any], Any] | None = None
    shards: int | None = None
    combiner: Callable[[Any, Iterator[Any]], Iterable[Any]] | None = None

    def __str__(self) -> str:
        return f"group_by {name_of(self.key)}: {name_of(self.reducer)}"


@dataclass(frozen=True)
class Reshard:
    """The same rows in the same order, in so many shards of about as many rows each."""

    shards: int

    def __str__(self) -> str:
        return f"reshard {self.shards}"


@dataclass(frozen=True)
class Gather:
    """One shard of all rows, in order, which a function makes one value of."""

    function: Callable[[Iterator[Any]], Any]

    def __str__(self) -> str:
        return f"reduce {name_of(self.function)}"


@dataclass(frozen=True)
class Commit:
    """One shard of one row, the path: the commit of a dataset whose shards the stage before has written."""

    path: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "commit"


@dataclass(frozen=True)
class Join:
    """Rows of the shard with the same number on the right, which is a dataset; both are sorted by key."""

    right: Any
    left_key: Callable[[Any], Any]
    right_key: Callable[[Any], Any]
    combiner: Callable[[Any, Any], Any]
    keeps_left: bool

    def __str__(self) -> str:
        return f"{'left' if self.keeps_left else 'inner'} join {name_of(self.left_key)} = {name_of(self.right_key)}"


RowOperation: TypeAlias = (
    Map | FlatMap | Filter | FilterExpression | Select | TakePerShard | Window | WindowBy | MapShard | Load | Write
)
Exchange: TypeAlias = GroupBy | Reshard | Gather | Commit | Join
Operation: TypeAlias = RowOperation | Exchange


def name_of(function: Any) -> str:
    """What plans and errors call a function."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if not name.endswith("<lambda>"):
        return str(name).replace("<locals>.", "")
    code = function.__code__
    return f"lambda (line {code.co_firstlineno})"
