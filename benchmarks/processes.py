"""Runs work in a process of its own, and looks at the memory and the time of the cores that it and its workers take."""

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 600
# Between two looks at the memory.
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Done(Generic[T]):
    """What came of it.

    Attributes:
        result: What the work returned.
        anonymous: The most bytes of own memory that the process and its workers had together (RssAnon), without those
            that each had from its beginning.
        mapped: Of mapped files (RssFile); the page cache holds one copy for all of them.
        cpu_seconds: Of all of them.
    """

    result: T
    anonymous: int
    mapped: int
    cpu_seconds: float


def apart(work: Callable[[], T], deadline: float = DEADLINE_SECONDS) -> Done[T]:
    """Do the work in a fork of this process, which has imported everything: threads and memory are its own.

    Args:
        deadline: seconds that it has, by default ten minutes.

    Raises:
        RuntimeError: it failed, or is not done by then.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(work, theirs))
    process.start()
    theirs.close()
    assert process.pid is not None
    inherited = _sizes(os.getpid())[0]
    anonymous, mapped, begin = 0, 0, time.monotonic()
    ticks: dict[int, int] = {}
    try:
        while not ours.poll(LOOK_SECONDS):
            family = list(_family(process.pid))
            ticks |= _ticks(family)
            sizes = [_sizes(each) for each in family]
            anonymous = max(anonymous, sum(max(0, own - inherited) for own, _ in sizes))
            mapped = max(mapped, sum(files for _, files in sizes))
            if time.monotonic() - begin > deadline:
                raise RuntimeError(f"not done in {deadline} seconds")
        ticks |= _ticks(_family(process.pid))
        result, failure = ours.recv()
    finally:
        _end(process)
    if failure:
        raise RuntimeError(failure)
    return Done(result, anonymous, mapped, sum(ticks.values()) / os.sysconf("SC_CLK_TCK"))


def settle() -> None:
    """Wait, at the end of the work, until its memory was looked at."""
    time.sleep(2 * LOOK_SECONDS)


def warm(folder: Path) -> None:
    """Bring the files into the page cache, which others may have filled."""
    buffer = bytearray(8 << 20)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def _answer(work: Callable[[], T], pipe: Connection) -> None:
    # A group of its own, which can be ended together.
    os.setpgid(0, 0)
    try:
        pipe.send((work(), None))
    except BaseException:
        pipe.send((None, traceback.format_exc()))


def _end(process: multiprocessing.process.BaseProcess) -> None:
    """Give it time to end its workers by itself."""
    process.join(10)
    if process.is_alive() and process.pid:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()


def _sizes(pid: int) -> tuple[int, int]:
    """RssAnon and RssFile of a process, in bytes; none of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss")}
    return sizes.get("RssAnon", 0), sizes.get("RssFile", 0)


def _ticks(pids: Iterable[int]) -> dict[int, int]:
    """What processes have taken of the cores, for themselves and in the kernel; those that have ended are left out."""
    found = {}
    for pid in pids:
        try:
            # After the name, which may have spaces.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid] = int(fields[11]) + int(fields[12])
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = [task.joinpath("children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return
    for child in " ".join(children).split():
        yield from _family(int(child))
