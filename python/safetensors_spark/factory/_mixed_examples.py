"""Rows of several streams, drawn by weights: one of the iterables that a `datasets.IterableDataset` is made of.

A mixture has shards of its own. Each takes a part of every stream, and draws by itself, so that its rows depend on the
seed and its number alone: not on who reads the other shards, nor on how many are read by one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from datasets.iterable_dataset import _BaseExamplesIterable

from safetensors_spark.dataset._shares import Weight, checked_weight
from safetensors_spark.factory._caps import Caps, Counting

Stopping = Literal["first_exhausted", "all_exhausted", "all_exhausted_without_replacement"]

# Draws that are made at a time: a state tells only how many were made.
_DRAWS = 1024


@dataclass(frozen=True)
class Recipe:
    """What decides the rows of a mixture beside its streams.

    Attributes:
        shards: how many the mixture has.
        step_samples: rows of a step, of which weights are functions.
    """

    weights: tuple[Weight, ...]
    caps: tuple[Caps, ...]
    counting: Counting
    seed: int
    stopping: Stopping
    step_samples: int
    shards: int


class MixedExamples(_BaseExamplesIterable):
    """The rows of some shards of a mixture, one shard after the other."""

    def __init__(self, ex_iterables: list[Any], recipe: Recipe, numbers: Sequence[int]) -> None:
        """`numbers` are those of the shards."""
        super().__init__()
        self.ex_iterables, self.recipe, self.numbers = ex_iterables, recipe, list(numbers)

    @property
    def num_shards(self) -> int:
        return len(self.numbers)

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> MixedExamples:
        places = self.split_shard_indices_by_worker(num_shards, index, contiguous=contiguous)
        return MixedExamples(self.ex_iterables, self.recipe, [self.numbers[place] for place in places])

    def shuffle_data_sources(self, generator: np.random.Generator) -> MixedExamples:
        shuffled = [one.shuffle_data_sources(generator) for one in self.ex_iterables]
        seed = int(generator.integers(1 << 62))
        return MixedExamples(shuffled, replace(self.recipe, seed=seed), self.numbers)

    def reshard_data_sources(self) -> MixedExamples:
        return self

    def _init_state_dict(self) -> dict[str, Any]:
        self._state_dict = {"shard": 0, "of_shard": None, "type": type(self).__name__}
        return self._state_dict

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        # Who needs no state has not asked for one.
        state: dict[str, Any] = self._state_dict or {"shard": 0, "of_shard": None}
        while state["shard"] < len(self.numbers):
            shard = _Shard(self.ex_iterables, self.recipe, self.numbers[state["shard"]], state["of_shard"])
            state["of_shard"] = shard.state
            yield from shard.rows()
            state["shard"] += 1
            state["of_shard"] = None


class _Shard:
    """One shard of a mixture while it is read."""

    def __init__(self, streams: Sequence[Any], recipe: Recipe, number: int, state: dict[str, Any] | None) -> None:
        self._recipe, self._number = recipe, number
        self._streams = [one.shard_data_sources(recipe.shards, number, contiguous=False) for one in streams]
        self._limits = [caps.part(number, recipe.shards) for caps in recipe.caps]
        count = len(streams)
        self.state: dict[str, Any] = state or {
            "draws": 0,
            "rows": 0,
            # Rows of the present pass, and in all: rows, tokens, images and bytes.
            "passed": [0] * count,
            "taken": [[0] * 4 for _ in range(count)],
            # Streams that have ended once, and those that nothing more is drawn of.
            "ended": [weight == 0 for weight in recipe.weights],
            "closed": [False] * count,
            "streams": [None] * count,
        }
        self._open = [self._opened(place) for place in range(count)]
        self._block, self._drawn = -1, np.empty(0)
        self._step, self._sums = -1, np.empty(0)

    def _opened(self, place: int) -> Iterator[tuple[Any, dict[str, Any]]]:
        stream, before = self._streams[place], self.state["streams"][place]
        stream._init_state_dict()
        if before is not None:
            stream.load_state_dict(before)
        self.state["streams"][place] = stream._state_dict
        return iter(stream)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        state = self.state
        while (place := self._draw()) is not None:
            row = self._next(place)
            if row is not None:
                state["rows"] += 1
                yield f"{self._number}_{state['draws']}", row
            elif self._recipe.stopping == "first_exhausted" or all(state["ended"]):
                # Nor does a state that is taken now continue.
                state["closed"] = [True] * len(self._streams)

    def _draw(self) -> int | None:
        """The stream of the next row; None if there is none to draw of."""
        # All shards go through the steps at about the same time.
        step = self.state["rows"] * self._recipe.shards // self._recipe.step_samples
        if step != self._step:
            self._step, self._sums = step, np.empty(0)
        if not len(self._sums):
            weights = [
                0.0 if closed else checked_weight(one(step) if callable(one) else one, step)
                for one, closed in zip(self._recipe.weights, self.state["closed"], strict=True)
            ]
            self._sums = np.cumsum(weights)
        if self._sums[-1] == 0:
            return None
        block, place = divmod(self.state["draws"], _DRAWS)
        if block != self._block:
            random = np.random.default_rng([self._recipe.seed, self._number, block])
            self._block, self._drawn = block, random.random(_DRAWS)
        self.state["draws"] += 1
        return int(self._sums.searchsorted(self._drawn[place] * self._sums[-1], side="right"))

    def _next(self, place: int) -> dict[str, Any] | None:
        """The next row of a stream; None if it has ended, or was closed by its cap."""
        state, limits = self.state, self._limits[place]
        found = None
        if not any(limit == 0 for limit in limits[:1]):
            found = next(self._open[place], None)
        if found is None:
            state["ended"][place] = True
            if self._recipe.stopping != "all_exhausted" or not state["passed"][place] or all(state["ended"]):
                self._close(place)
                return None
            state["passed"][place], state["streams"][place] = 0, None
            self._open[place] = self._opened(place)
            found = next(self._open[place])
        row: dict[str, Any] = found[1]
        if any(limit is not None for limit in limits):
            more = self._recipe.counting.of(row, limits)
            taken = [before + now for before, now in zip(state["taken"][place], more, strict=True)]
            if any(limit is not None and now > limit for now, limit in zip(taken, limits, strict=True)):
                state["ended"][place] = True
                self._close(place)
                return None
            state["taken"][place] = taken
        state["passed"][place] += 1
        return row

    def _close(self, place: int) -> None:
        self.state["closed"][place] = True
        self._sums = np.empty(0)
