"""Texts through language, rules of Gopher and C4, and two ways to find duplicates, beside others who do the same."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import factory_contenders as by
from benchmarks import texts
from benchmarks.harness import Options, bring_to_disk, turns
from benchmarks.processes import apart, settle
from benchmarks.results import Measure, Result, Table
from safetensors_spark.pipeline._backend import bytes_of

CONTENDERS: dict[str, Callable[[], by.Start]] = {
    "factory": by.factory,
    "Daft": by.daft,
    "HF datasets": by.hf_datasets,
    "datatrove": by.datatrove,
}
SECONDS, CPU, TEXTS = Measure("seconds"), Measure("CPU seconds", "less"), Measure("texts a CPU second")
MEMORY, LEFT = Measure("memory MB"), Measure("texts left")

# Of one run. datatrove's tokenizer takes minutes for each ten megabytes.
DEADLINE_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Taken:
    """What one run has taken, its start among it, and what it has left."""

    seconds: float
    cpu_seconds: float
    memory: int
    left: frozenset[str]


def run(options: Options, folder: Path) -> Iterator[Table]:
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
    yield times(f"texts-{options.size}", found, rows)
    yield what_is_left(f"left-{options.size}", found)


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


def times(name: str, found: dict[str, list[Taken]], rows: int) -> Table:
    """Ratios are of the seconds of all cores."""
    results = []
    for contender, taken in found.items():
        values: dict[str, Sequence[float]] = {
            SECONDS.name: [one.seconds for one in taken],
            CPU.name: [one.cpu_seconds for one in taken],
            TEXTS.name: [rows / one.cpu_seconds for one in taken],
            MEMORY.name: [max(one.memory for one in taken) / 1e6],
            LEFT.name: [len(taken[0].left)],
        }
        results.append(Result(contender, values, contender == "factory"))
    return Table(name, f"{rows:,} texts", [SECONDS, CPU, TEXTS, MEMORY, LEFT], results, None)


def what_is_left(name: str, found: dict[str, list[Taken]]) -> Table:
    """How many texts of each kind each contender leaves, and how many are others than the first contender's."""
    first = next(iter(found))
    kinds: Sequence[str] = ("fresh", *texts.SHARES)
    others = (f"not in {first}", f"{first} alone")
    results = []
    for contender, taken in found.items():
        here, there = taken[0].left, found[first][0].left
        counts = Counter(one.partition("-")[0] for one in here)
        differ = (len(here - there), len(there - here))
        figures = (*(counts[kind] for kind in kinds), *differ)
        values = {head: [figure] for head, figure in zip((*kinds, *others), figures, strict=True)}
        results.append(Result(contender, values, contender == first))
    return Table(name, "Texts that are left, by kind", [Measure(one) for one in (*kinds, *others)], results, None)
