"""Weights that change with the step of a mixture."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._shares import checked_weight

Interpolate = Literal["step", "linear"]


@dataclass(frozen=True)
class Curriculum:
    """Weights at some steps, for a mixture whose shares change while it is taken.

        curriculum = Curriculum([(0, {"web": 0.9, "code": 0.1}), (10_000, {"web": 0.5, "code": 0.5})])
        mix([(web, curriculum["web"]), (code, curriculum["code"])])

    `curriculum["web"]` is a weight of `mix`: a function of the step. Before the first step that is given the weights
    are those of the first one, and behind the last step those of the last one.

    Attributes:
        points: each a step and the weights from there on, with one weight for each name.
        interpolate: between two steps, `step` keeps the weights of the earlier one, and `linear` draws a line.

    Raises `TypeError` or `ValueError` for steps that do not ascend, other names than those of the first step, and
    weights that are none.
    """

    points: tuple[tuple[int, dict[str, float]], ...]
    interpolate: Interpolate = "step"

    def __init__(self, points: Iterable[tuple[int, Mapping[str, float]]], interpolate: Interpolate = "step") -> None:
        if interpolate not in ("step", "linear"):
            raise ValueError(f"interpolate is {interpolate!r:.100}, expected 'step' or 'linear'")
        found = tuple(_point(point) for point in points)
        if not found or not found[0][1]:
            raise ValueError("a curriculum was given no weights, expected pairs of a step and weights by name")
        for (step, weights), (later, others) in pairwise(found):
            if later <= step:
                raise ValueError(f"a curriculum has step {later} behind step {step}, expected steps that ascend")
            if weights.keys() != others.keys():
                raise ValueError(
                    f"a curriculum has weights of {', '.join(weights)} at step {step}, but of {', '.join(others)} at "
                    f"step {later}. Give each step the same names, with 0 for what is not taken."
                )
        for step, weights in found:
            if not any(weights.values()):
                raise ValueError(f"the weights of step {step} are all 0, expected one that is not")
        object.__setattr__(self, "points", found)
        object.__setattr__(self, "interpolate", interpolate)

    def __getitem__(self, name: str) -> Callable[[int], float]:
        """The weight of this name. Raises `KeyError` for a name that has none."""
        if name not in self.points[0][1]:
            raise KeyError(f"the curriculum has no weight of {name!r:.100}, only of {', '.join(self.points[0][1])}")
        return CurriculumWeight(
            tuple(step for step, _ in self.points),
            tuple(weights[name] for _, weights in self.points),
            self.interpolate,
        )

    def __hash__(self) -> int:
        return hash((tuple((step, tuple(weights.items())) for step, weights in self.points), self.interpolate))


@dataclass(frozen=True)
class CurriculumWeight:
    """A weight as a function of the step. It goes to other processes, and its parameters are compared by states."""

    steps: tuple[int, ...]
    weights: tuple[float, ...]
    interpolate: Interpolate

    def __call__(self, step: int) -> float:
        behind = bisect_right(self.steps, step)
        if behind == 0:
            return self.weights[0]
        before = behind - 1
        if self.interpolate == "step" or behind == len(self.steps):
            return self.weights[before]
        part = (step - self.steps[before]) / (self.steps[behind] - self.steps[before])
        return self.weights[before] * (1 - part) + self.weights[behind] * part


def _point(point: object) -> tuple[int, dict[str, float]]:
    if not isinstance(point, tuple | list) or len(point) != 2 or not isinstance(point[1], Mapping):
        raise TypeError(f"a curriculum was given {point!r:.200}, expected pairs of a step and weights by name")
    step = whole("a step of a curriculum", point[0], 0)
    return step, {str(name): checked_weight(weight, step) for name, weight in point[1].items()}
