"""The graph of a stage's operators: the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant
from safetensors_spark.factory._operator import Operator

Edge = tuple[str, str]


def in_order(stage: str, operators: Sequence[Operator], edges: Sequence[Edge]) -> list[Operator]:
    """The operators, each behind those that edges lead from; of those that could be next, the first that is listed.

    Raises `ConfigError` for ids that no operator has, for edges that form a cycle, and for an operator that uses a
    field of another one without a path between them: what it gets would depend on chance.
    """
    by_id = {one.id: one for one in operators}
    before: dict[str, set[str]] = {name: set() for name in by_id}
    for number, (begin, end) in enumerate(edges):
        for name in (begin, end):
            if name not in by_id:
                raise ConfigError(
                    f"an edge of stage `{stage}` names `{name}`, which is not an operator's id. {meant(name, by_id)}",
                    ("edges", number),
                )
        before[end].add(begin)
    # For each operator all those before it, directly or not.
    above: dict[str, set[str]] = {}
    while len(above) < len(by_id):
        ready = next((name for name in by_id if name not in above and before[name] <= above.keys()), None)
        if ready is None:
            circle = _circle({name: some for name, some in before.items() if name not in above})
            raise ConfigError(f"edges of stage `{stage}` form a cycle: {' -> '.join(circle)}.", ("edges",))
        above[ready] = before[ready].union(*(above[name] for name in before[ready]))
    ordered = [by_id[name] for name in above]
    _check_fields(stage, ordered, above)
    return ordered


def _check_fields(stage: str, ordered: Sequence[Operator], above: dict[str, set[str]]) -> None:
    for number, later in enumerate(ordered):
        for earlier in ordered[:number]:
            if earlier.id in above[later.id]:
                continue
            for one, other in ((earlier, later), (later, earlier)):
                shared = sorted(set(one.writes) & {*other.reads, *other.writes})
                if shared:
                    raise ConfigError(
                        f"in stage `{stage}`, `{one.id}` writes `{shared[0]}` and `{other.id}` uses it, but no edge "
                        f"says which is first. Add [{one.id}, {other.id}], or the other way round.",
                        ("edges",),
                    )


def _circle(before: dict[str, set[str]]) -> list[str]:
    """A circle of a graph in which each name has one before it."""
    path = [next(iter(before))]
    while True:
        name = next(one for one in sorted(before[path[-1]]) if one in before)
        if name in path:
            return [name, *reversed(path[path.index(name) :])]
        path.append(name)
