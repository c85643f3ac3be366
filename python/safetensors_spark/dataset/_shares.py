"""How many samples of each dataset the steps of a mixture take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from math import isfinite
from typing import TypeAlias

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._permutation import mixed, permuted

# Of so many steps each is rounded another way, so that together they have the datasets' shares to a sample.
_PERIOD = 1024

Weight: TypeAlias = float | Callable[[int], float]


class Shares:
    """The shares of datasets in steps of one size: numbers that weights and seed tell, and nothing else.

    Where weights depend on the step, all steps before one are weighed to find how much they take.

    Attributes:
        size: how many samples a step takes.
    """

    def __init__(self, weights: Sequence[Weight], size: int, seed: int) -> None:
        """Raises `TypeError` or `ValueError` for weights of step 0 that are none."""
        self._weights, self.size, self.seed = weights, size, seed
        self._turns = permuted(np.arange(_PERIOD), _PERIOD, mixed(seed, size)) / _PERIOD
        # What all steps before some take; the others are counted from the nearest one.
        self._marks: dict[int, list[int]] = {0: [0] * len(weights)}
        self._period: Array | None = None
        shares = self._at(0)
        if not any(map(callable, weights)):
            taken = np.array([self._rounded(shares, step) for step in range(_PERIOD)])
            self._period = np.concatenate([np.zeros((1, len(weights)), np.int64), np.cumsum(taken, axis=0)])

    @property
    def fingerprint(self) -> str:
        """Tells these shares from others, but for weights that are functions, of which nobody knows what they are."""
        return repr(([_known(weight) for weight in self._weights], self.size, self.seed))

    def of(self, step: int) -> Array:
        """How many samples of each dataset the step takes."""
        if self._period is None:
            return self._rounded(self._at(step), step)
        turn = step % _PERIOD
        return self._period[turn + 1] - self._period[turn]  # type: ignore[no-any-return]

    def before(self, step: int) -> list[int]:
        """How many samples of each dataset all steps before this one take."""
        if self._period is not None:
            periods, turn = divmod(step, _PERIOD)
            whole, rest = self._period[-1].tolist(), self._period[turn].tolist()
            return [periods * one + more for one, more in zip(whole, rest, strict=True)]
        at = max(mark for mark in (step // _PERIOD * _PERIOD, *self._marks) if mark in self._marks and mark <= step)
        taken = self._marks[at]
        while at < step:
            taken = [one + more for one, more in zip(taken, self.of(at).tolist(), strict=True)]
            at += 1
            if at % _PERIOD == 0:
                self._marks[at] = taken
        return taken

    def _rounded(self, shares: Array, step: int) -> Array:
        """Whole numbers of samples, whose sum is the step's size."""
        return np.diff(np.floor(shares * self.size + self._turns[step % _PERIOD]).astype(np.int64), prepend=0)

    def _at(self, step: int) -> Array:
        """The share of each dataset with those before it, of 1."""
        weights = [checked_weight(one(step) if callable(one) else one, step) for one in self._weights]
        if not any(weights):
            raise ValueError(f"the weights of step {step} are all 0, expected one that is not")
        sums = np.cumsum(weights)
        return sums / sums[-1]  # type: ignore[no-any-return]


def _known(weight: Weight) -> object:
    if is_dataclass(weight):
        # A function whose parameters tell what it is, such as that of a `Curriculum`.
        return weight
    return None if callable(weight) else checked_weight(weight, 0)


def checked_weight(value: object, step: int) -> float:
    """The weight as a number. Raises `TypeError` or `ValueError` for what is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"a weight of step {step} is {value!r:.100}, expected a number") from None
    if not isfinite(number) or number < 0:
        raise ValueError(f"a weight of step {step} is {number}, expected a number from 0 on")
    return number
