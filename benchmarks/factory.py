"""Texts through language, rules of Gopher and C4, and two ways to find duplicates, beside others who do the same."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import factory_contenders as by
from benchmarks import texts
from benchmarks.harness import Options, bring_to_disk, turns, within_rounds
from benchmarks.processes import apart, settle
from safetensors_spark.pipeline._backend import bytes_of

CONTENDERS: dict[str, Callable[[], by.Start]] = {
    "factory": by.factory,
    "Daft": by.daft,
    "HF datasets": by.hf_datasets,
    "datatrove": by.datatrove,
}
# Of one run. datatrove's tokenizer takes minutes for each ten megabytes.
DEADLINE_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Taken:
    """What one run has taken, its start among it, and what it has left."""

    seconds: float
    cpu_seconds: float
    memory: int
    left: frozenset[str]


def run(options: Options, folder: Path) -> Iterator[str]:
    size = bytes_of(options.size)
    assert size is not None
    source = folder / "in"
    # Apart: threads of Arrow would not be in its forks.
    rows = apart(partial(texts.make, source, size), DEADLINE_SECONDS).result
    contenders = [name for name in CONTENDERS if options.parts is None or name in options.parts]
    found: dict[str, list[Taken]] = {name: [] for name in contenders}
    # Each process is a new one, which reads what was just written: there is nothing to warm.
    for number, name in turns(contenders, options.rounds - 1):
        print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
        found[name].append(measured(CONTENDERS[name], source, folder / "run"))
    yield times(found, rows)
    yield what_is_left(found)


def measured(contender: Callable[[], by.Start], source: Path, folder: Path) -> Taken:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        done = apart(partial(_timed, contender, source, folder), DEADLINE_SECONDS)
        seconds, out = done.result
        left = apart(partial(_names, out), DEADLINE_SECONDS).result
        return Taken(seconds, done.cpu_seconds, done.anonymous, frozenset(left))
    finally:
        shutil.rmtree(folder)


def _timed(contender: Callable[[], by.Start], source: Path, folder: Path) -> tuple[float, Path]:
    begin = time.perf_counter()
    out = contender()(source, folder / "out", folder / "cache")
    bring_to_disk(out)
    seconds = time.perf_counter() - begin
    settle()
    return seconds, out


def _names(folder: Path) -> list[str]:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    found: list[str] = []
    for path in sorted(folder.rglob("*.parquet")):
        found += pq.read_table(path, columns=["id"]).column("id").to_pylist()
    return found


def times(found: dict[str, list[Taken]], rows: int) -> str:
    """A line for each contender. A ratio is the median of those within a round, of the seconds of all cores."""
    first = next(iter(found))
    heads = (f"{rows:,} texts", "seconds", "CPU seconds", "texts/CPU s", f"{first} x", "memory MB", "texts left")
    lines = ["{:16} {:>10} {:>12} {:>12} {:>10} {:>10} {:>11}".format(*heads)]
    for name, taken in found.items():
        seconds, cpu = median(one.seconds for one in taken), median(one.cpu_seconds for one in taken)
        ratio = within_rounds([one.cpu_seconds for one in taken], [one.cpu_seconds for one in found[first]])
        memory = max(one.memory for one in taken) / 1e6
        left = len(taken[0].left)
        lines.append(
            f"{name:16} {seconds:>10.1f} {cpu:>12.1f} {rows / cpu:>12,.0f} {ratio:>10.2f} {memory:>10,.0f} {left:>11,}"
        )
    return "\n".join(lines)


def what_is_left(found: dict[str, list[Taken]]) -> str:
    """How many texts of each kind each contender leaves, and how many are others than the first contender's."""
    first = next(iter(found))
    kinds: Sequence[str] = ("fresh", *texts.SHARES)
    others = (f"not in {first}", f"{first} alone")
    lines = [f"{'texts left':16}" + "".join(f"{kind:>9}" for kind in kinds) + "".join(f"{one:>16}" for one in others)]
    for name, taken in found.items():
        here, there = taken[0].left, found[first][0].left
        counts = Counter(one.partition("-")[0] for one in here)
        differ = (len(here - there), len(there - here))
        lines.append(
            f"{name:16}" + "".join(f"{counts[kind]:>9,}" for kind in kinds) + "".join(f"{one:>16,}" for one in differ)
        )
    return "\n".join(lines)
