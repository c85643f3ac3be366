"""What a process holds of its machine, and whether that grows."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reliability.bounded import call
from reliability.check import Outcome

SECONDS = 3600
MB = 1_000_000

# What may be added after the first hundred repetitions. If one is kept of each, it is more, even in a short form.
MAY_GROW = {
    "descriptors": 12,
    "maps": 24,
    "threads": 12,
    "heap": 24 * MB,
    "direct": 8 * MB,
    "resident": 64 * MB,
    "blocks": 20_000,
}


def _repetitions(scale: float) -> tuple[int, int]:
    """How many repetitions there are before the first measure, and before the last one."""
    count = max(40, round(1000 * scale))
    return min(100, count // 2), count


def held(process: int) -> dict[str, int]:
    """Descriptors, maps and threads of a process, and its resident memory in bytes. Linux tells all of them."""
    proc = Path(f"/proc/{process}")
    if not proc.exists():
        resident = subprocess.check_output(["ps", "-o", "rss=", "-p", str(process)])
        return {"resident": 1024 * int(resident)}
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return {
        "descriptors": len(list((proc / "fd").iterdir())),
        "maps": len((proc / "maps").read_text().splitlines()),
        "threads": int(status["Threads"]),
        "resident": 1024 * int(status["VmRSS"].split()[0]),
    }


def _check_flat(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Holds that nothing has grown by more than `MAY_GROW`; says what it was, and what it is."""
    for name, value in after.items():
        assert value - before[name] <= MAY_GROW[name], f"{name} grew: {before} became {after}"
    return ", ".join(f"{_named(name)} {_shown(name, before[name])} to {_shown(name, after[name])}" for name in after)


def stays_flat(repeat: Callable[[str, int, int], dict[str, Any]], scale: float) -> Outcome:
    """Repeats something in a process of its own, in a folder, and holds that the process has not grown.

    Args:
        repeat: takes the folder, the repetitions before the first measure, and all of them; returns both measures as
            `before` and `after`, and the `rows` that it has read.
    """
    first, count = _repetitions(scale)
    with TemporaryDirectory() as folder:
        answer = call(repeat, folder, first, count, seconds=SECONDS)
    seen = _check_flat(answer["before"], answer["after"])
    return Outcome(count, f"{answer['rows']:,} rows read; {seen}")


def _named(name: str) -> str:
    return {
        "heap": "live heap",
        "direct": "direct memory",
        "resident": "resident memory",
        "blocks": "blocks of Python's memory",
    }.get(name, name)


def _shown(name: str, value: int) -> str:
    return f"{value / MB:,.0f} MB" if MAY_GROW[name] >= MB else f"{value:,}"
