"""What work takes as rows, tensors of a file, files, keys and appends grow: time and memory at four sizes."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import growth_work as work
from benchmarks import peaks
from benchmarks.harness import Options
from benchmarks.processes import apart, settle
from benchmarks.results import Growth, Series
from benchmarks.sessions import OURS, Jar, Session, sessions
from safetensors_spark import jar_path

# Of one process, on a machine that has other work.
DEADLINE_SECONDS = 3600

# What is before the name of a part that Spark runs.
SPARK = "spark-"

# CPU seconds of each round, and what else was measured, by its name.
Measured = tuple[list[float], dict[str, float]]


@dataclass(frozen=True)
class Kind:
    """One kind of work.

    Attributes:
        expected: The exponent that its time should not be above.
        run: Takes the folder and the size; of Spark also the session, as the first.
    """

    name: str
    expected: float
    run: Callable[..., object]
    on_spark: bool = False


@dataclass(frozen=True)
class Growing:
    """Something that grows.

    Attributes:
        make: Puts what all kinds of work need into an empty folder.
    """

    title: str
    of: str
    sizes: Sequence[int]
    make: Callable[[Path, int], object]
    kinds: Sequence[Kind]


GROWING = {
    "rows": Growing(
        "Rows of 64 floats",
        "rows",
        (16_384, 65_536, 262_144, 1_048_576),
        work.make_rows,
        [
            Kind("`DatasetWriter`", 1, work.write_rows),
            Kind("`open_dataset`, batches", 1, work.read_rows),
            Kind("writes", 1, work.spark_writes_rows, True),
            Kind("reads", 1, work.spark_reads_rows, True),
        ],
    ),
    "tensors": Growing(
        "Tensors of one file",
        "tensors",
        (1_000, 8_000, 64_000, 512_000),
        work.make_tensors,
        [
            Kind("`open_store`, one tensor", 1, work.open_tensors),
            Kind("dtypes of all", 1, work.spark_tensors, True),
        ],
    ),
    "shards": Growing(
        "Shards that a manifest names",
        "shards",
        (4_000, 16_000, 64_000, 256_000),
        work.make_shards,
        [
            Kind("`open_dataset`", 1, work.open_samples),
            Kind("loads and plans", 1, work.spark_plans, True),
        ],
    ),
    "files": Growing(
        "Files without a manifest",
        "files",
        (100, 400, 1_600, 6_400),
        work.make_files,
        [
            Kind("`open_dataset`", 1, work.open_samples),
            Kind("loads and plans", 1, work.spark_plans, True),
        ],
    ),
    "keys": Growing(
        "Keys of 16 bytes, with an index",
        "keys",
        (8_000, 40_000, 200_000, 1_000_000),
        work.make_keys,
        [
            Kind("`DatasetWriter`", 1, work.write_keys),
            Kind("`open_store`, a first key", 0, work.open_key),
            Kind("the same 1,000 keys again", 0, work.Keys()),
            Kind("writes", 1, work.spark_writes_keys, True),
            Kind("one key", 0, work.spark_key, True),
        ],
    ),
    "appends": Growing(
        "The append after so many others",
        "appends",
        (10, 40, 160, 640),
        work.make_appends,
        [
            Kind("`DatasetWriter`, rows", 0, work.append_rows),
            Kind("`DatasetWriter`, keys", 0, work.append_keys),
            Kind("rows", 0, work.spark_appends_rows, True),
            Kind("keys", 0, work.spark_appends_keys, True),
        ],
    ),
}


def run(options: Options, folder: Path) -> Iterator[Growth]:
    every = [name for what in GROWING for name in (what, f"{SPARK}{what}")]
    for name in options.parts or every:
        growing, on_spark = GROWING[name.removeprefix(SPARK)], name.startswith(SPARK)
        kinds = [kind for kind in growing.kinds if kind.on_spark == on_spark]
        # One session for all sizes, since Java is slow at first.
        with sessions([Jar(OURS, jar_path())] if on_spark else [], folder / "sessions") as opened:
            found = {
                size: sized(growing, kinds, size, options.rounds, folder / name, *opened) for size in growing.sizes
            }
        series = [
            Series(
                kind.name,
                kind.expected,
                {size: measured[kind][0] for size, measured in found.items()},
                {size: measured[kind][1] for size, measured in found.items()},
            )
            for kind in kinds
        ]
        yield Growth(name, f"{growing.title}, {'Spark' if on_spark else 'Python'}", growing.of, series)


def sized(
    growing: Growing, kinds: Sequence[Kind], size: int, rounds: int, place: Path, session: Session | None = None
) -> dict[Kind, Measured]:
    """What all kinds of work take at this size."""
    place.mkdir()
    apart(partial(growing.make, place, size), DEADLINE_SECONDS)
    found = {}
    for kind in kinds:
        print(f"{growing.title}, {size:,}: {kind.name}", file=sys.stderr)
        found[kind] = measured(kind, place, size, rounds, session)
    shutil.rmtree(place)
    return found


def measured(kind: Kind, place: Path, size: int, rounds: int, session: Session | None = None) -> Measured:
    """What runs on Spark, in the session's process; else in a process of its own. The first round does not count."""
    if session and kind.on_spark:
        result: Measured = session.run(on_spark, kind.run, place, size, rounds)
        return result
    done = apart(partial(in_python, kind.run, place, size, rounds), DEADLINE_SECONDS)
    taken, also = done.result
    return taken, also | {peaks.OWN: done.anonymous / 1e6}


def in_python(run: Callable[..., object], place: Path, size: int, rounds: int) -> Measured:
    with peaks.of_process() as memory:
        taken = [seconds_of(os.getpid(), run, place, size) for _ in range(rounds + 1)]
    settle()
    return summed(taken, memory)


def on_spark(spark: SparkSession, run: Callable[..., object], place: Path, size: int, rounds: int) -> Measured:
    with peaks.of_jvm(spark) as memory:
        pid = peaks.jvm_of(spark)
        taken = [seconds_of(pid, run, spark, place, size) for _ in range(rounds + 1)]
    return summed(taken, memory)


def seconds_of(pid: int, run: Callable[..., Any], *arguments: Any) -> tuple[float, float]:
    """Seconds by the clock, and of the process that works."""
    # The clock that the kernel has for each process.
    clock = ~pid << 3 | 2
    start, cpu = time.perf_counter(), time.clock_gettime(clock)
    run(*arguments)
    return time.perf_counter() - start, time.clock_gettime(clock) - cpu


def summed(taken: Sequence[tuple[float, float]], memory: dict[str, float]) -> Measured:
    counted = taken[1:] or taken
    return [cpu for _, cpu in counted], {"seconds": median(one for one, _ in counted), **memory}
