"""Puts files to the connector's reader and to the official library, and compares what they say.

python tests/pyspark_interop/fuzz.py --seconds 600 --seed 7             as many files as there is time for
python tests/pyspark_interop/fuzz.py --seed 7 --first 12 --cases 1      one of them again
python tests/pyspark_interop/fuzz.py target/fuzz/7-12.safetensors       a file that was kept

A file is known by seed and number. Where the sides differ it is made smaller and kept, and the program ends with 1.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any

from fuzz_faults import made
from fuzz_mutations import SEEDS, heavy, mutated, truncations
from fuzz_sides import Answer, Side, official_side, our_side
from sbt import ROOT

KEPT = ROOT / "target" / "fuzz"
BATCH = 500
TRIES_TO_SHRINK = 500
LARGEST_TO_SHRINK = 20_000
# More of them have most often the same cause, and making each smaller takes its time.
MOST_DIFFERENCES = 5

# The library sorts tensors of the same offsets by chance, so that it finds one fault or another.
TRIES_OF_CHANCE = 40

FIXED = [*SEEDS, *truncations(), *heavy()]

Case = tuple[str, bytes]


def case(seed: int, number: int) -> Case:
    """The file of that number: the fixed ones first, the others by chance."""
    name = f"{seed}-{number}"
    if number < len(FIXED):
        return name, FIXED[number]
    chance = random.Random(name)
    if chance.random() < 0.65:
        return name, made(chance)
    return name, mutated(chance, chance.choice(SEEDS) if chance.random() < 0.5 else made(chance))


@dataclass
class Report:
    """What was seen: how often the library accepted, and refused for each reason, and where the sides differed."""

    verdicts: Counter[str] = field(default_factory=Counter)
    by_chance: int = 0
    disagreements: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return sum(self.verdicts.values())

    def __str__(self) -> str:
        lines = [f"{number:9,} {verdict}" for verdict, number in self.verdicts.most_common()]
        return "\n".join(
            [
                *lines,
                f"{self.cases:9,} files",
                f"{self.by_chance:9,} of them refused by the library for one reason or another, by chance",
                f"{self.disagreements:9,} of them seen otherwise by safe_open, for which the same may hold",
                f"{len(self.differences):9,} differences",
                *self.differences,
            ]
        )


def same(content: bytes, official: Answer, ours: Answer) -> bool:
    if "fault" in official or "fault" in ours:
        return False
    if "refused" in official or "refused" in ours:
        return official.get("refused") == ours.get("refused")
    as_read = {"tensors": official["tensors"], "metadata": official["metadata"] or {}}
    return {**as_read, "repeats_names": repeats_names(content)} == ours


def repeats_names(content: bytes) -> bool:
    """Whether a tensor's name, or a key of the metadata, stands twice; the library does not tell."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length], object_pairs_hook=Members, parse_int=str, parse_float=str)
    metadata = [value for name, value in header if name == "__metadata__" and value is not None]
    return any(len({name for name, _ in members}) < len(members) for members in (header, *metadata))


class Members(list[tuple[str, Any]]):
    """A JSON object with all that it says."""


class Fuzz:
    """Both sides, and a directory for the files that are put to them."""

    def __init__(self, official: Side, ours: Side, folder: Path) -> None:
        self.report = Report()
        self._official, self._ours, self._folder = official, ours, folder

    def run(self, cases: Iterator[Case]) -> None:
        """The next files are made while the sides work on these."""
        with ThreadPoolExecutor(2) as askers:
            asked: list[Case] = []
            answers: list[Future[list[Answer]]] = []
            for turn in count():
                batch = list(islice(cases, BATCH))
                paths = self._write(batch, turn % 2)
                for one, official, ours in zip(asked, *(answer.result() for answer in answers), strict=True):
                    self._judge(one, official, ours)
                if not batch or len(self.report.differences) >= MOST_DIFFERENCES:
                    return
                asked = batch
                answers = [askers.submit(side.answers, paths) for side in (self._official, self._ours)]

    def _write(self, batch: list[Case], half: int) -> list[Path]:
        paths = [self._folder / f"{half}-{number}" for number in range(len(batch))]
        for path, (_, content) in zip(paths, batch, strict=True):
            path.write_bytes(content)
        return paths

    def _ask(self, content: bytes) -> tuple[Answer, Answer]:
        path = self._folder / "again"
        path.write_bytes(content)
        return self._official.answers([path])[0], self._ours.answers([path])[0]

    def _judge(self, one: Case, official: Answer, ours: Answer) -> None:
        self.report.verdicts[official.get("refused", "accepted")] += 1
        self.report.disagreements += "safe_open" in official
        if not same(one[1], official, ours):
            if self._differs(one[1]):
                self._keep(one)
            else:
                self.report.by_chance += 1

    def _differs(self, content: bytes) -> bool:
        """Whether the library never says what the reader says."""
        official, ours = self._ask(content)
        if same(content, official, ours):
            return False
        if "refused" not in official or "refused" not in ours:
            return True
        path = self._folder / "again"
        return not any(same(content, again, ours) for again in self._official.answers([path] * TRIES_OF_CHANCE))

    def _keep(self, one: Case) -> None:
        name, content = one
        # A side that hangs, or has to be started again, would do so at each try.
        at_fault = any("fault" in answer for answer in self._ask(content))
        smaller = content if at_fault else shrunk(content, self._differs)
        official, ours = self._ask(smaller)
        kept = KEPT / f"{name}.safetensors"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(smaller)
        texts = [str(answer)[:2000] for answer in (official, ours)]
        self.report.differences.append(
            f"{kept.relative_to(ROOT)}: {smaller[:2000]!r}\n  the library: {texts[0]}\n  the reader: {texts[1]}"
        )


def shrunk(content: bytes, differs: Callable[[bytes], bool]) -> bytes:
    """A smaller file that still differs, found by leaving out parts; the header's length follows, or stays."""
    part = len(content) // 2 if len(content) < LARGEST_TO_SHRINK else 0
    tries = 0
    while part and tries < TRIES_TO_SHRINK:
        at = 0
        while at < len(content) and tries < TRIES_TO_SHRINK:
            candidates = [content[:at] + content[at + part :]]
            length = int.from_bytes(content[:8], "little")
            if at >= 8 and length >= part:
                candidates.insert(0, (length - part).to_bytes(8, "little") + candidates[0][8:])
            tries += len(candidates)
            smaller = next(filter(differs, candidates), None)
            if smaller is None:
                at += part
            else:
                content = smaller
        part //= 2
    return content


def fuzz(cases: Iterator[Case]) -> Report:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sides = official_side(), our_side()
        try:
            run = Fuzz(*sides, folder)
            run.run(cases)
            return run.report
        finally:
            for side in sides:
                side.close()


def cases_of(seed: int, first: int = 0) -> Iterator[Case]:
    return (case(seed, number) for number in count(first))


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the reader with the official library, on many files.")
    parser.add_argument("files", nargs="*", type=Path, help="these files, in place of made ones")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--cases", type=int, help="how many files; as many as there is time for by default")
    parser.add_argument("--seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    if arguments.files:
        report = fuzz((path.name, path.read_bytes()) for path in arguments.files)
    else:
        begun = time.monotonic()
        print(f"seed {arguments.seed}", flush=True)
        cases = islice(cases_of(arguments.seed, arguments.first), arguments.cases)
        report = fuzz(takewhile(lambda _: time.monotonic() - begun < arguments.seconds, cases))
    print(report)
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
