"""Files of JSON lines through a filter and two maps, or through expressions alone, beside others who do the same."""

import gzip
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks import pipeline_contenders as by
from benchmarks.harness import Options, bring_to_disk, turns
from benchmarks.processes import Done, apart, settle
from benchmarks.results import Measure, Result, Table
from safetensors_spark.pipeline._paths import FOLDER

FILES = 16
# Of a text: so a record has half as many bytes as an embedding of `--rows`.
CHARACTERS = 2000

SECONDS, START, CPU = Measure("seconds"), Measure("start"), Measure("CPU seconds", "less")
RECORDS, MEMORY = Measure("records a CPU second"), Measure("memory MB")

FUNCTIONS: dict[str, Callable[..., by.Start]] = {
    "multiprocessing": by.multiprocessing,
    "pipeline, processes": by.processes,
    "pipeline, Ray": by.on_ray,
    "pipeline, Spark": by.on_spark,
    "datatrove": by.datatrove,
    "Ray Data": by.ray_data,
    "Daft": by.daft,
    "HF datasets": by.hf_datasets,
    "PySpark": by.pyspark,
}
EXPRESSIONS: dict[str, Callable[..., by.Start]] = {
    "multiprocessing": partial(by.multiprocessing, expressions=True),
    "multiprocessing, ISA-L": partial(by.multiprocessing, expressions=True, isal=True),
    "pipeline, processes": partial(by.processes, expressions=True),
    "Daft": partial(by.daft, expressions=True),
    "PySpark": partial(by.pyspark, expressions=True),
}


@dataclass(frozen=True)
class Taken:
    """What one run has taken; seconds without those of its start."""

    seconds: float
    start: float
    cpu_seconds: float
    memory: int


def run(options: Options, folder: Path) -> Iterator[Table]:
    source = folder / "in"
    kept = make(source, options.rows)
    for name, title, contenders in (
        ("functions", "a filter and two maps", FUNCTIONS),
        ("expressions", "expressions alone", EXPRESSIONS),
    ):
        for kind, file in (("jsonl", ".jsonl.gz"), ("parquet", "Parquet")):
            found = compare(contenders, kind, source, kept, options.rounds, folder / "run")
            yield table(f"{name}-{kind}", f"{title}, to {file}", found, kept)


def compare(
    contenders: dict[str, Callable[..., by.Start]],
    kind: str,
    source: Path,
    kept: int,
    rounds: int,
    folder: Path,
) -> dict[str, list[Taken]]:
    found: dict[str, list[Taken]] = {name: [] for name in contenders}
    for number, name in turns(list(contenders), rounds):
        taken = measured(partial(contenders[name], kind), source, folder, None if number else kept)
        if number:
            found[name].append(taken)
    return found


def measured(contender: Callable[[], by.Start], source: Path, folder: Path, kept: int | None) -> Taken:
    """Run it, and count what it has written, where it is said how much that should be."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        done: Done[tuple[float, float]] = apart(partial(_timed, contender, source, folder))
        if kept is not None and (count := written(folder / "out")) != kept:
            raise RuntimeError(f"{contender} has written {count} records, and not {kept}")
        start, seconds = done.result
        return Taken(seconds, start, done.cpu_seconds, done.anonymous)
    finally:
        shutil.rmtree(folder)


def _timed(contender: Callable[[], by.Start], source: Path, folder: Path) -> tuple[float, float]:
    begin = time.perf_counter()
    work = contender()
    started = time.perf_counter()
    work(source, folder / "out", folder / "cache")
    bring_to_disk(folder / "out")
    ended = time.perf_counter()
    settle()
    return started - begin, ended - started


def make(folder: Path, records: int) -> int:
    """Write the files. Returns how many of the records a filter keeps."""
    random = np.random.default_rng(1)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(random.choice(letters, size)) for size in random.integers(2, 12, 20_000)]
    # Frequent and rare ones, as in a language.
    text = " ".join(words[place % len(words)] for place in random.zipf(1.2, 4_000_000))
    folder.mkdir()
    kept = 0
    for file in range(FILES):
        count = records * (file + 1) // FILES - records * file // FILES
        scores, places = random.random(count), random.integers(0, len(text) - CHARACTERS, count)
        with gzip.open(folder / f"{file:02d}.jsonl.gz", "wt", 6, "utf-8") as lines:
            for number, (score, place) in enumerate(zip(scores.tolist(), places.tolist(), strict=True)):
                name = f"{file}-{number}"
                record = {"id": name, "url": f"https://example.org/{name}", "lang": "en", "score": score}
                lines.write(json.dumps(record | {"text": text[place : place + CHARACTERS]}) + "\n")
        kept += int((scores > by.LEAST).sum())
    return kept


def written(folder: Path) -> int:
    """The records in files."""
    count = 0
    for path in folder.rglob("[!._]*"):
        if FOLDER in path.parts:
            continue
        if path.suffix == ".parquet":
            count += pq.read_metadata(path).num_rows
        elif ".json" in path.name:
            with path.open("rb") as file:
                is_compressed = file.read(2) == b"\x1f\x8b"
            with gzip.open(path) if is_compressed else path.open("rb") as lines:
                count += sum(1 for _ in lines)
    return count


def table(name: str, title: str, found: dict[str, list[Taken]], kept: int) -> Table:
    """Ratios are of the seconds of all cores."""
    results = []
    for contender, taken in found.items():
        values = {
            SECONDS.name: [one.seconds for one in taken],
            START.name: [one.start for one in taken],
            CPU.name: [one.cpu_seconds for one in taken],
            RECORDS.name: [kept / one.cpu_seconds for one in taken],
            MEMORY.name: [max(one.memory for one in taken) / 1e6],
        }
        results.append(Result(contender, values, contender.startswith("pipeline,")))
    return Table(name, title, [SECONDS, START, CPU, RECORDS, MEMORY], results, "multiprocessing")
