"""The most frequent of many values, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


class Frequent:
    """Counts values, and forgets rare ones where there are too many: the summary of Misra and Gries.

    Attributes:
        total: how many were counted, also of those that are forgotten.
        counts: by value. While `is_exact` all of them; later lower bounds, and each value is there that is more than
            the `limit`th part of all.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.counts: Counter[Any] = Counter()
        self.total, self.is_exact = 0, True

    def add(self, counts: Mapping[Any, int]) -> None:
        self.counts.update(counts)
        self.total += sum(counts.values())
        # Not at each value, as it looks at all counts.
        if len(self.counts) > 2 * self._limit:
            self.is_exact = False
            top = self.top(self._limit + 1)
            least = top.pop()[1]
            # Those with nothing left stay, too, as many as may: where all are equally frequent, some are told.
            self.counts = Counter({value: count - least for value, count in top})

    def top(self, number: int) -> list[tuple[Any, int]]:
        """The most frequent ones. Equal counts are in the order of the values' texts."""
        return sorted(self.counts.items(), key=lambda one: (-one[1], str(one[0])))[:number]
