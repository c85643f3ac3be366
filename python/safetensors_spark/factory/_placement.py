"""Where operators run: in the workers that have the rows, or in actors of Ray that live as long as the stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError, counted
from safetensors_spark.factory._apply import Outcome, outcome
from safetensors_spark.factory._keys import keys_of
from safetensors_spark.factory._loaded import loaded
from safetensors_spark.factory._operator import Deduplicator, Keys, Operator
from safetensors_spark.pipeline import Backend, RayBackend

# Ray counts in steps of a ten-thousandth.
_STEP = 1e-4


def has_actors(operator: Operator, backend: Backend) -> bool:
    """Whether the operator runs in actors: on Ray, if it asks for GPUs, or for a number of actors."""
    return isinstance(backend, RayBackend) and (operator.gpus > 0 or operator.concurrency is not None)


def placement(operator: Operator, backend: Backend) -> str:
    """Where the operator runs, in words."""
    unit = f"{operator.gpus:g} GPU" if operator.gpus else "CPU"
    if has_actors(operator, backend):
        count = "actors for all GPUs" if operator.concurrency is None else counted(operator.concurrency, "actor")
        return f"{unit}, {count}"
    is_loaded = type(operator).load is not Operator.load
    return f"{unit}, in each worker" if is_loaded or operator.gpus else unit


@dataclass(frozen=True)
class Actors:
    """The actors of a stage's operators: names of pools, by the operator's id."""

    pools: Mapping[str, str] = field(default_factory=dict)

    def __fingerprint__(self) -> str:
        # Where operators run changes nothing of what they make.
        return ""

    def ready(self, operators: Sequence[Operator]) -> tuple[Operator, ...]:
        """The operators. Those that have no actors are loaded in this process."""
        here = iter(loaded(one for one in operators if one.id not in self.pools))
        return tuple(one if one.id in self.pools else next(here) for one in operators)

    def outcome(self, operator: Operator, batch: pa.RecordBatch, quarantine: bool) -> Outcome:
        """What an operator makes of a batch, here or in an actor, as `outcome` says."""
        if operator.id in self.pools:
            found: Outcome = self._asked(operator, batch, quarantine)
            return found
        return outcome(operator, batch, quarantine)

    def keys(self, operator: Deduplicator, batch: pa.RecordBatch) -> Keys:
        """The keys of a batch's rows."""
        found: Keys = self._asked(operator, batch) if operator.id in self.pools else keys_of(operator, batch)
        return found

    def _asked(self, operator: Operator, batch: pa.RecordBatch, quarantine: bool = False) -> Any:
        from safetensors_spark.factory._actors import ask

        return ask(self.pools[operator.id], operator, batch, quarantine)


@contextmanager
def actors_of(operators: Sequence[Operator], backend: Backend) -> Iterator[Actors]:
    """Actors of those operators that run in some, which end with the block.

    Raises `PipelineError` if the cluster has no GPU for one of them.
    """
    some = [one for one in operators if has_actors(one, backend)]
    if not some:
        yield Actors()
        return
    assert isinstance(backend, RayBackend)
    backend.connect()
    from safetensors_spark.factory._actors import Pool, gpus_of_nodes

    counts = counts_of(some, gpus_of_nodes(), backend.options.max_parallelism)
    with ExitStack() as stack:
        pools = {}
        for one in some:
            pool = Pool(one, counts[one.id])
            stack.callback(pool.end)
            pools[one.id] = pool.name
        yield Actors(pools)


def counts_of(operators: Sequence[Operator], nodes: Sequence[float], most: int) -> dict[str, int]:
    """How many actors each operator has: what it asks for; else what there are GPUs for, with as many for each.

    Args:
        nodes: how many GPUs each has.
        most: actors of an operator that does not say how many.

    Raises `PipelineError` for an operator of which not even one actor finds a place.
    """
    free = [[1.0] * int(count) for count in nodes]
    counts = {one.id: 0 for one in operators}
    growing = list(operators)
    while growing:
        for one in list(growing):
            limit = most if one.concurrency is None else one.concurrency
            if counts[one.id] < limit and _take(free, one.gpus):
                counts[one.id] += 1
                continue
            growing.remove(one)
            if not counts[one.id]:
                raise PipelineError(_no_place(one, operators, nodes))
    # Others than those that find a place now may find one when other jobs end, or nodes are added.
    return {one.id: one.concurrency or counts[one.id] for one in operators}


def _take(free: list[list[float]], gpus: float) -> bool:
    """Whether a node had so many GPUs, or a GPU such a part, which are no longer free."""
    if gpus == 0:
        return True
    share, count = min(gpus, 1.0), max(1, int(gpus))
    for node in free:
        fitting = [place for place, part in enumerate(node) if part >= share - _STEP]
        if len(fitting) >= count:
            for place in fitting[:count]:
                node[place] -= share
            return True
    return False


def _no_place(operator: Operator, operators: Sequence[Operator], nodes: Sequence[float]) -> str:
    others = [f"`{one.id}`" for one in operators if one.gpus and one is not operator]
    shared = f", which {', '.join(others)} of the same stage asks for, too" if others else ""
    told = ", ".join(f"{count:g}" for count in nodes)
    return (
        f"`{operator.id}` asks for {operator.gpus:g} GPU, and the nodes of Ray's cluster have {told}{shared}. Start "
        "nodes that have GPUs (`ray start --num-gpus`), ask for less of one (`gpus: 0.5`), or set `gpus` to 0."
    )
