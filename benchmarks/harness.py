"""Times contenders in turn, so that what else the machine does falls on all of them, and compares within each round."""

import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What the command line asks for; `__main__` says what they mean."""

    rows: int
    rounds: int
    keys: int
    append_keys: int
    parts: Sequence[str] | None
    baseline: Path | None
    peer: Path | None
    size: str


@dataclass(frozen=True)
class Contender:
    """Something that does its work in an empty folder.

    Attributes:
        name: As the table shows it.
        run: The work; what it writes is brought to the disk before the clock stops.
        aim: The least that its speed should be, as a ratio to the first contender's; none without one.
    """

    name: str
    run: Callable[[Path], object]
    aim: float | None = None


def measure(contenders: Sequence[Contender], rounds: int, folder: Path) -> dict[str, list[float]]:
    """Seconds by contender and round. The first round, in which all is cold, does not count."""
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number, contender in turns(contenders, rounds):
        print(f"round {number} of {rounds}: {contender.name}", file=sys.stderr)
        taken = timed(contender.run, folder / "run")
        if number > 0:
            seconds[contender.name].append(taken)
    return seconds


def turns(contenders: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """All in each round, with its number; round 0 is the one that does not count."""
    order = Random(0)
    for number in range(rounds + 1):
        # Not always behind the same one, which leaves the disk and the heap as it likes.
        for contender in order.sample(contenders, len(contenders)):
            yield number, contender


def within_rounds(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios within a round: what else the machine did in that round fell on both."""
    return median(one / other for one, other in zip(ones, others, strict=True))


def timed(run: Callable[[Path], object], folder: Path) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.sync()
    # DataFrames of the round before, which hold what the driver planned for them.
    gc.collect()
    try:
        start = time.perf_counter()
        run(folder)
        bring_to_disk(folder)
        return time.perf_counter() - start
    finally:
        shutil.rmtree(folder)


def bring_to_disk(folder: Path) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fsync, [path for path in folder.rglob("*") if path.is_file()]))


def fsync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def table(contenders: Sequence[Contender], seconds: dict[str, list[float]], input_bytes: int) -> str:
    """A line for each contender; a ratio is the median of those within a round."""
    first = contenders[0].name
    lines = [f"{'':44} {'seconds':>16} {'GB/s of input':>14} {'x ' + first:>16}  aim"]
    for contender in contenders:
        taken = seconds[contender.name]
        ratio = within_rounds(seconds[first], taken)
        spread = f"{median(taken):.2f} ({min(taken):.2f}-{max(taken):.2f})"
        aim = "" if contender.aim is None else f"{contender.aim:g}"
        speed = input_bytes / 1e9 / median(taken)
        lines.append(f"{contender.name:44} {spread:>16} {speed:>14.2f} {ratio:>16.2f}  {aim}".rstrip())
    return "\n".join(lines)
