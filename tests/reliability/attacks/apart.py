"""Attacks in processes of their own."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reliability.attacks.errors import told
from reliability.bounded import call
from reliability.check import Outcome

SECONDS = 3600
PROCESSES = 2


def attacked(attack: Callable[..., dict[str, Any]], *arguments: Any) -> Outcome:
    """What an attack has tried, and how often what came of it."""
    found = call(attack, *arguments, seconds=SECONDS)
    return Outcome(found["attempts"], told(Counter(found["seen"])))


def in_batches(work: Callable[[int, int], dict[str, Any]], count: int, batch: int) -> list[dict[str, Any]]:
    """The answers of processes, each of which is given the number of its first case, and how many it has."""
    spans = [(first, min(batch, count - first)) for first in range(0, count, batch)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        return list(pool.map(lambda span: call(work, *span, seconds=SECONDS), spans))
