"""Loads batches for training from files that the page cache holds: this project, other libraries, and two limits."""

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product, repeat
from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.harness import Options, turns
from benchmarks.limits import WORKERS, Batch, Contender, Loading
from benchmarks.processes import Done, apart, settle, warm
from benchmarks.results import Measure, Result, Table
from benchmarks.rows import Rows
from benchmarks.samples import Samples, embeddings, images

# How long batches are counted: several epochs of what is fast, and a part of one of what is slow.
COUNTED_SECONDS = 1.0
# What the others are compared with, by worker processes.
LIMITS = {0: "NumPy memmap", WORKERS: "empty dataset"}
ORDERS = {False: "in order", True: "shuffled"}
RATES = {shuffled: Measure(f"{order}, a second", "more") for shuffled, order in ORDERS.items()}
FIRST, OWN, MAPPED = Measure("first batch, ms"), Measure("own MB"), Measure("mapped MB")


@dataclass(frozen=True)
class Turn:
    contender: Contender
    loading: Loading

    def __str__(self) -> str:
        loading = self.loading
        return f"{loading.samples.name}, {ORDERS[loading.shuffled]}, {loading.workers} workers: {self.contender.name}"


@dataclass(frozen=True)
class Speed:
    """Samples a second, and seconds from nothing opened to the first batch."""

    rate: float
    first: float


def run(options: Options, folder: Path) -> Iterator[Table]:
    """Images, then embeddings: of each half as many bytes as the rows have."""
    for kind in (images, embeddings):
        place = folder / kind.__name__
        place.mkdir()
        samples = kind(options.rows * 4096 // 2, place)
        samples.make()
        yield from benchmark(samples, CONTENDERS, options.rounds)
        shutil.rmtree(place)


def benchmark(samples: Samples | Rows, contenders: Sequence[Contender], rounds: int) -> Iterator[Table]:
    """The rates of the contenders, which each write their own files first."""
    all_turns = [turn for contender in contenders for turn in prepared(contender, samples)]
    measured: dict[Turn, list[Done[Speed]]] = {turn: [] for turn in all_turns}
    for number, turn in turns(all_turns, rounds):
        print(f"round {number} of {rounds}: {turn}", file=sys.stderr)
        warm(turn.loading.folder)
        if number > 0:
            measured[turn].append(apart(partial(speed, turn)))
        elif turn.contender.whole and samples.is_checked(turn.loading.shuffled, turn.loading.workers):
            apart(partial(check, turn))
    for workers in LIMITS:
        yield table(samples, contenders, workers, measured)


def prepared(contender: Contender, samples: Samples | Rows) -> list[Turn]:
    """Writes its files, if another with the same did not."""
    place = samples.folder / contender.write.__name__
    if not place.exists():
        print(f"{samples.name}: {place.name}", file=sys.stderr)
        place.mkdir()
        apart(partial(contender.write, samples, place))
    return [Turn(contender, Loading(samples, place, *how)) for how in product(ORDERS, LIMITS)]


def check(turn: Turn) -> None:
    """Refuses a contender whose epoch, or the part of it that is looked at, is not every sample once."""
    samples = turn.loading.samples
    found = samples.totals(first(turn.contender.load(turn.loading), samples.checked))
    if found != samples.expected(found[0]):
        raise ValueError(f"{turn}: {found[0]} samples have the totals {found}, expected {samples.expected(found[0])}")


def first(batches: Iterable[Batch], count: int) -> Iterator[Batch]:
    """Batches until there are so many samples."""
    for batch in batches:
        yield batch
        count -= len(batch["label"])
        if count <= 0:
            break


def speed(turn: Turn) -> Speed:
    opened = time.perf_counter()
    batches = turn.contender.load(turn.loading)
    iterator = iter(batches)
    next(iterator)
    begun = time.perf_counter() - opened
    rate = passed(iterator)
    if turn.loading.workers == 0:
        # Once more, now that files are mapped and memory is there: against workers' own costs that is nothing.
        rate = passed(chain.from_iterable(repeat(batches)))
    settle()
    return Speed(rate, begun)


def passed(batches: Iterator[Batch]) -> float:
    """Samples a second, until there are no more or the time is over."""
    samples, start = 0, time.perf_counter()
    for batch in batches:
        samples += len(batch["label"])
        if time.perf_counter() - start > COUNTED_SECONDS:
            break
    return samples / (time.perf_counter() - start)


def table(
    samples: Samples | Rows, contenders: Sequence[Contender], workers: int, measured: dict[Turn, list[Done[Speed]]]
) -> Table:
    """Of each contender the rates, the first batch when shuffled, the most memory."""
    done = {
        (turn.contender.name, turn.loading.shuffled): each
        for turn, each in measured.items()
        if turn.loading.workers == workers
    }
    results = []
    for contender in contenders:
        # Without workers nothing is to be learned from batches of nothing.
        if not (contender.whole or workers):
            continue
        straight, shuffled = done[contender.name, False], done[contender.name, True]
        both = straight + shuffled
        values = {
            RATES[False].name: [each.result.rate for each in straight],
            RATES[True].name: [each.result.rate for each in shuffled],
            FIRST.name: [each.result.first * 1000 for each in shuffled],
            OWN.name: [max(each.anonymous for each in both) / 1e6],
            MAPPED.name: [max(each.mapped for each in both) / 1e6],
        }
        aims = {rate.name: contender.aims[workers] for rate in RATES.values() if workers in contender.aims}
        results.append(Result(contender.name, values, contender.is_ours, aims))
    title = f"{samples.name}, {workers} workers"
    name = title.lower().replace(",", "").replace(" ", "-")
    return Table(name, title, [*RATES.values(), FIRST, OWN, MAPPED], results, LIMITS[workers])
