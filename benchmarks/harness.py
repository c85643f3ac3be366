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
from typing import TypeVar

from benchmarks.results import SECONDS, Measure, Result, Table

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
        aim: The least that its speed should be, as a ratio to the limit's; none without one.
        is_ours: Whether it is this project; else it is an alternative, or the limit.
    """

    name: str
    run: Callable[[Path], object]
    aim: float | None = None
    is_ours: bool = True


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


def table(
    name: str,
    title: str,
    contenders: Sequence[Contender],
    seconds: dict[str, list[float]],
    input_bytes: int = 0,
    measure: Measure = SECONDS,
) -> Table:
    """The first contender is the limit."""
    speed = Measure("GB/s of input")
    results = []
    for one in contenders:
        taken = seconds[one.name]
        values = {measure.name: taken}
        if input_bytes:
            values[speed.name] = [input_bytes / 1e9 / each for each in taken]
        aims = {} if one.aim is None else {measure.name: one.aim}
        results.append(Result(one.name, values, one.is_ours, aims))
    return Table(name, title, [measure, speed] if input_bytes else [measure], results, contenders[0].name)


def side_by_side(name: str, title: str, tables: Sequence[Table], limit: str | None) -> Table:
    """One table of several, whose measures have other names: a contender has a line for all of them."""
    joined: dict[str, Result] = {}
    for one in (one for each in tables for one in each.results):
        before = joined.get(one.name, Result(one.name, {}, one.is_ours))
        values, aims = {**before.values, **one.values}, {**before.aims, **one.aims}
        joined[one.name] = Result(one.name, values, one.is_ours, aims)
    return Table(name, title, [measure for each in tables for measure in each.measures], [*joined.values()], limit)


def place_of(folder: Path) -> str:
    """What decides how fast files are written: "memory" or "disk"."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(point, kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return "memory" if max(above, key=lambda mount: len(mount[0]))[1] == "tmpfs" else "disk"
