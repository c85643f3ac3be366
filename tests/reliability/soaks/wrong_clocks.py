"""Writers whose clocks are ten minutes apart from those of others."""

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from reliability.check import Check, Outcome
from safetensors_spark._files.commit.lock import locked
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.dataset import open_dataset, write_dataset

# Twice as long as others respect a lock of which nothing changes.
OFF = 600
# In a process of its own; it tells the time.
_APPEND = (
    "import sys, time; from reliability.soaks.wrong_clocks import append; "
    "append(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])); print(time.time())"
)
# A commit that others wait for takes so long.
HELD_S = 2.0


@cache
def library() -> Path:
    """What makes a clock wrong, compiled by this machine's C compiler."""
    source = Path(__file__).parents[1] / "clock.c"
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    made = Path(folder.name, "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", made, source, "-ldl"], check=True)
    return made


def wrong_clock(seconds: int) -> dict[str, str]:
    """The environment of a process whose wall clock is ahead by so many seconds.

    The clock that only counts is right, and so are the times of files, which the file system tells.
    """
    return {"LD_PRELOAD": str(library()), "CLOCK_AHEAD": str(seconds)}


def append(path: str | Path, first: int, count: int) -> None:
    """So many numbers, each a row as those of `failures`."""
    numbers = np.arange(first, first + count, dtype=np.float32)
    write_dataset({"x": np.stack([numbers, np.full_like(numbers, 0.5)], axis=1)}, path, batch_size=2)


def numbers(path: Path) -> list[int]:
    """Of all rows, sorted."""
    return sorted(int(number) for number in open_dataset(path)[:]["x"][:, 0])


@contextmanager
def held(path: Path) -> Iterator[list["subprocess.Popen[str]"]]:
    """A commit of this process, whose clock is right, until the writers of the block wait for it, and longer."""
    from failures import OPTIONS, ROWS, wait_for

    append(path, 0, 1)
    writers: list[subprocess.Popen[str]] = []

    def wait() -> bool:
        assert all(writer.poll() is None for writer in writers), "a writer did not wait"
        shards = len(writers) * ROWS // OPTIONS["batch_size"]
        return sum(1 for _ in path.glob("_temporary/**/*.safetensors")) == int(shards)

    with locked(open_target(path)) as lock:
        yield writers
        # What they wrote is there, so that they commit.
        wait_for(wait, 600)
        time.sleep(HELD_S)
        assert wait()
        lock.verify()


def writers(path: Path) -> list[int]:
    """Python's: one is behind, one is right, one is ahead."""
    from failures import ROWS, written

    firsts = {-OFF: 100, 0: 200, OFF: 300}
    with held(path) as others:
        for off, first in firsts.items():
            command = [sys.executable, "-c", _APPEND, str(path), str(first), str(ROWS)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **wrong_clock(off)}
            others.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    for off, other in zip(firsts, others, strict=True):
        clock, _ = other.communicate()
        assert other.returncode == 0
        assert abs(float(clock) - off - time.time()) < OFF / 2
    return [0, *(number for first in firsts.values() for number in written(first))]


def drivers(path: Path) -> list[int]:
    """Spark's: one is behind, one is ahead."""
    from failures import Job, written

    firsts = {-OFF: 100, OFF: 200}
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                Job(path, path.with_name(f"log{first}"), master="local[1]", first=first, env=wrong_clock(off))
            )
            for off, first in firsts.items()
        ]
        for off, job in zip(firsts, jobs, strict=True):
            # Local applications are named after the time.
            begun = int(job.ids["application"].removeprefix("local-")) / 1000
            assert abs(begun - off - time.time()) < OFF / 2
        with held(path) as others:
            others += [job.process for job in jobs]
        for job in jobs:
            job.finish()
    return [0, *(number for first in firsts.values() for number in written(first))]


def rounds(append: Callable[[Path], Sequence[int]], most: int) -> Callable[[float], Outcome]:
    def run(scale: float) -> Outcome:
        from failures import leftovers

        count = max(1, round(most * scale))
        rows = 0
        for _ in range(count):
            with TemporaryDirectory() as folder:
                path = Path(folder, "dataset")
                expected = append(path)
                assert numbers(path) == expected
                assert leftovers(path) == []
                rows += len(expected)
        return Outcome(count, f"{rows:,} rows counted")

    return run


_HOLDS = "All wait for the commit that is under way, none takes its lock, all rows are counted, and no file is left."

CHECKS = (
    Check(
        name="clocks-of-writers",
        kind="soak",
        environment="python",
        what="three of Python's writers append at once, one whose clock is ten minutes behind, one ten minutes ahead",
        holds=_HOLDS,
        run=rounds(writers, 50),
    ),
    Check(
        name="clocks-of-drivers",
        kind="soak",
        environment="spark",
        what="two drivers append at once; the clock of one is ten minutes behind, of the other ten minutes ahead",
        holds=_HOLDS,
        run=rounds(drivers, 10),
    ),
)
