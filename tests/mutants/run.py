"""Runs mutants: `python -m mutants.run [GROUP ...]`. Survivors go to `results.json`, where each has its reason."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from queue import Queue
from typing import Any

from mutants.groups import GROUPS, Group
from mutants.mutations import Mutant, sample
from mutants.page import PAGE, RESULTS, page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "safetensors_spark"
LEAST = 0.9


class Worker:
    """A copy of the package, whose modules are mutated, and a process that tests it."""

    def __init__(self, folder: Path, environment: str) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(PACKAGE, folder / "safetensors_spark", ignore=shutil.ignore_patterns("__pycache__"))
        python = ROOT / environment / "bin" / "python"
        self._process = subprocess.Popen(
            [python, Path(__file__).with_name("forks.py")],
            cwd=ROOT,
            # So that what tests draw at random is the same each time.
            env={**os.environ, "CI": "true", "PYTHONPATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: Sequence[str], seconds: float = 3600) -> tuple[int, float]:
        """The exit code of pytest, and how many seconds of a processor it took, of so many at most."""
        assert self._process.stdin
        assert self._process.stdout
        job = {"package": str(self.folder), "tests": tests, "seconds": ceil(seconds)}
        print(json.dumps(job), file=self._process.stdin, flush=True)
        code, took = self._process.stdout.readline().split()
        return int(code), float(took)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        path = self.folder / "safetensors_spark" / mutant.file
        source = path.read_text()
        path.write_text(mutant.text)
        # Python takes a module that was compiled in the same second, and is as long, for the same.
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        try:
            yield
        finally:
            path.write_text(source)
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def run(name: str, group: Group, size: int, seed: int, jobs: int) -> dict[str, Any]:
    """What the tests let live."""
    places, mutants = sample(PACKAGE, group.files, size, f"{seed} {name}")
    workers: Queue[Worker] = Queue()
    for number in range(jobs):
        workers.put(Worker(ROOT / "target" / "mutants" / f"{name}-{number}", group.environment))
    tests = [one for one in (group.quick, group.slow) if one]

    @contextmanager
    def worker() -> Iterator[Worker]:
        one = workers.get()
        try:
            yield one
        finally:
            workers.put(one)

    def seconds(one: Sequence[str]) -> float:
        with worker() as free:
            code, took = free.run(one)
        if code:
            sys.exit(f"{name}: the tests fail without a mutant")
        return took

    def tried(mutant: Mutant) -> int:
        with worker() as free, free.mutated(mutant):
            codes = (free.run(one, 3 * took + 10)[0] for one, took in zip(tests, times, strict=True))
            code = next((code for code in codes if code), 0)
        if code == 0:
            before, after = mutant.changed((PACKAGE / mutant.file).read_text())
            print(f"survived: {mutant.file}:{mutant.line} {mutant.operator}\n  - {before}\n  + {after}", flush=True)
        return code

    try:
        with ThreadPoolExecutor(jobs) as threads:
            times = list(threads.map(seconds, tests))
            print(f"{name}: {len(mutants)} mutants of {places} places, tests of {sum(times):.0f} s", flush=True)
            codes = list(threads.map(tried, mutants))
    finally:
        while not workers.empty():
            workers.get().close()
    return {
        "places": places,
        "mutants": len(mutants),
        "killed": sum(code != 0 for code in codes),
        # By a signal: a machine that is too busy may be the reason, too.
        "timeouts": sum(code < 0 for code in codes),
        "survivors": [mutant for mutant, code in zip(mutants, codes, strict=True) if code == 0],
    }


def _key(mutant: Mutant) -> tuple[str, ...]:
    return mutant.file, *mutant.changed((PACKAGE / mutant.file).read_text())


def _known(name: str) -> dict[tuple[str, ...], str]:
    """The survivors that are on record, and why they are."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return {
        (one["file"], one["before"], one["after"]): one["why"] for one in results.get(name, {}).get("survivors", ())
    }


def _record(name: str, found: dict[str, Any], seed: int) -> list[str]:
    """Put what was found into the results. Returns what is wrong with it."""
    known = _known(name)
    survivors = []
    for mutant in found["survivors"]:
        file, before, after = key = _key(mutant)
        survivors.append(
            {"file": file, "line": mutant.line, "before": before, "after": after, "why": known.get(key, "")}
        )
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = {**found, "seed": seed, "survivors": survivors}
    RESULTS.write_text(json.dumps({one: results[one] for one in GROUPS if one in results}, indent=1) + "\n")
    score = found["killed"] / found["mutants"]
    print(f"{name}: {found['killed']} of {found['mutants']} killed, {score:.2f}")
    wrong = [
        f"{name}: {one['file']}:{one['line']} survived, and results.json does not say why"
        for one in survivors
        if not one["why"]
    ]
    return wrong + ([f"{name}: {score:.2f} is less than {LEAST}"] if score < LEAST else [])


def main() -> None:
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], metavar="GROUP")
    parser.add_argument("--mutants", type=int, default=40, help="how many of each group")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    wrong = []
    for name in given.groups or GROUPS:
        found = run(name, GROUPS[name], given.mutants, given.seed, given.jobs)
        wrong += _record(name, found, given.seed)
        PAGE.write_text(page(json.loads(RESULTS.read_text())))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
