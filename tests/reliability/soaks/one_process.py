"""A thousand opens in one Python process."""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from reliability.check import Check, Outcome
from reliability.held import held, stays_flat
from safetensors_spark.dataset import open_dataset, open_store, write_dataset

ROWS = 2000
KEYS = 500
# Of each append; after so many the dataset is overwritten.
ADDED, APPENDS = 10, 10


def measured() -> dict[str, int]:
    gc.collect()
    return held(os.getpid()) | {"blocks": sys.getallocatedblocks()}


def make(folder: Path) -> None:
    numbers = np.arange(ROWS)
    texts = [str(number) for number in range(ROWS)]
    write_dataset({"n": numbers, "t": texts}, folder / "batches", batch_size=100)
    keys = [f"k{number}" for number in range(KEYS)]
    rows = np.arange(KEYS * 4).reshape(KEYS, 4)
    write_dataset({"k": keys, "x": rows}, folder / "keys", name_col="k", generate_index=True)


def samples(folder: Path, number: int) -> int:
    """Single samples and slices, of text too."""
    dataset = open_dataset(folder / "batches")
    row = number * 7 % ROWS
    assert dataset[row] == {"n": row, "t": str(row)}
    assert dataset[row : row + 150]["n"].tolist() == list(range(ROWS))[row : row + 150]
    return 1 + min(150, ROWS - row)


def epoch(folder: Path, number: int) -> int:
    """All rows in batches, shuffled, by two threads."""
    batches = open_dataset(folder / "batches", columns=["n"]).batches(128, shuffle=True, seed=number, threads=2)
    found = np.concatenate([batch["n"] for batch in batches])
    assert np.array_equal(np.sort(found), np.arange(ROWS))
    return ROWS


def abandoned(folder: Path, number: int) -> int:
    """An epoch that is left in its midst."""
    for batch in open_dataset(folder / "batches", columns=["n"]).batches(128, shuffle=True, seed=number, threads=2):
        return len(batch["n"])
    raise AssertionError("no batch")


def keys(folder: Path, number: int) -> int:
    """One key, several, and all of them."""
    store = open_store(folder / "keys")
    row = number * 7 % KEYS
    assert store[f"k{row}"].tolist() == list(range(4 * row, 4 * row + 4))
    assert store.stack([f"k{row}", "k0"])[:, 0].tolist() == [4 * row, 0]
    assert len(list(store)) == KEYS
    return 3


def appended(folder: Path, number: int) -> int:
    """Rows appended by a writer, with the rows that are there then."""
    path, place = folder / "appended", number % APPENDS
    names = [f"k{one}" for one in range(place * ADDED, (place + 1) * ADDED)]
    mode = "append" if place else "overwrite"
    batch = {"k": names, "x": np.full((ADDED, 2), place)}
    write_dataset(batch, path, name_col="k", generate_index=True, mode=mode)
    store = open_store(path)
    assert len(store) == (place + 1) * ADDED
    assert store[names[-1]].tolist() == [place, place]
    return 1


STEPS = (samples, epoch, abandoned, keys, appended)


def repeat(folder: str, first: int, count: int) -> dict[str, Any]:
    """What this process holds after the first repetitions, and after all; and how many rows it has read."""
    path, rows = Path(folder), 0
    make(path)
    before: dict[str, int] = {}
    for number in range(count):
        if number == first:
            before = measured()
        rows += sum(step(path, number) for step in STEPS)
    return {"before": before, "after": measured(), "rows": rows}


def run(scale: float) -> Outcome:
    return stays_flat(repeat, scale)


CHECK = Check(
    name="one-process",
    kind="soak",
    environment="python",
    what="1,000 times in one process: samples, whole and abandoned epochs, look-ups by key, appends",
    holds="Every row is as it was written. After the first hundred descriptors, maps, threads and memory are flat.",
    run=run,
)
