"""A store of ten million keys, appended to every day of a year.

What is compared is time of the processor, which does not depend on what else the machine does.
"""

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from reliability.check import Check, Outcome
from safetensors_spark.dataset import open_store, verify, write_dataset

KEYS, APPENDS = 10_000_000, 365
LOOK_UPS = 50
# What a growth with the number of keys would exceed by far: there are twelve times as many in the last tenth.
MAY_BE_SLOWER = 4.0


def run(scale: float) -> Outcome:
    appends = APPENDS if scale >= 1 else max(20, round(APPENDS * scale))
    added = max(500, round(KEYS * scale) // appends)
    random = np.random.default_rng(7)
    writes, reads, parts = [], [], []
    with TemporaryDirectory() as folder:
        path = Path(folder, "store")
        for day in range(appends):
            numbers = np.arange(day * added, (day + 1) * added)
            batch = {"k": [key(number) for number in numbers.tolist()], "x": numbers.astype(np.int32)}
            gc.collect()
            begun = time.process_time()
            write_dataset(batch, path, name_col="k", generate_index=True)
            writes.append(time.process_time() - begun)
            reads.append(look_up(path, random.integers(0, (day + 1) * added, LOOK_UPS).tolist()))
            store = open_store(path)
            assert len(store) == (day + 1) * added
            assert store.manifest is not None
            parts.append(len(store.manifest.index_parts))
        assert max(parts) <= 6, parts
        report = verify(path)
        assert report.faults == [], report.faults
    appended, looked_up = slower(writes), slower(reads)
    if scale >= 1:
        assert max(appended, looked_up) < MAY_BE_SLOWER, (appended, looked_up)
    tenths = (
        f"in the last tenth an append took {appended:.2f} times as long as in the first, look-ups {looked_up:.2f} times"
    )
    return Outcome(
        appends * (LOOK_UPS + 1),
        f"{appends} appends of {added:,} keys; {tenths}; at most {max(parts)} parts of the index",
    )


def key(number: int) -> str:
    """Keys of a day lie between those of others."""
    return f"k{number * 7_919 % 10_000_019:08}"


def look_up(path: Path, numbers: Sequence[int]) -> float:
    """Seconds of the processor that it took to open the store and look up some keys."""
    begun = time.process_time()
    store = open_store(path)
    found = [int(store[key(number)]) for number in numbers]
    seconds = time.process_time() - begun
    assert found == numbers
    assert key(KEYS + 7) not in store
    return seconds


def slower(seconds: Sequence[float]) -> float:
    """The median of the last tenth by that of the first one, which begins after a warm-up as long."""
    tenth = max(1, len(seconds) // 10)
    return median(seconds[-tenth:]) / median(seconds[tenth : 2 * tenth])


CHECK = Check(
    name="year-of-appends",
    kind="soak",
    environment="python",
    what="a store that is appended to 365 times until it has ten million keys, with 50 look-ups after each append",
    holds="Every key is found, and no append or look-up takes four times as long at the end as at the start.",
    run=run,
)
