"""Datasets with damaged files, read by Python."""

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import in_batches
from reliability.attacks.errors import outcome, told
from reliability.bounded import resident_mb
from reliability.check import Check, Outcome

DATASETS = 100_000
BATCH = 5000


def run(scale: float) -> Outcome:
    count = int(DATASETS * scale)
    found = in_batches(read, count, BATCH)
    seen = sum((Counter(one["seen"]) for one in found), Counter[str]())
    assert len(seen) > 5, f"the damage reaches few rules: {seen}"
    assert seen["done"] > count / 50, f"no dataset is read in spite of its damage: {seen}"
    return Outcome(count, f"{told(seen)}; at most {max(one['memory'] for one in found)} MB of memory")


def read(first: int, count: int) -> dict[str, Any]:
    """So many datasets. Raises AssertionError for one that gives neither an error of ours nor the right values."""
    from reliability.attacks.reading import read_all
    from reliability.attacks.victims import build, damaged
    from reliability.attacks.watched import check_untouched, watch

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        victims = build(Path(folder))
        watch(Path(folder, "secret"))
        for number in range(first, first + count):
            target = Path(folder, "target")
            kind, what = damaged(random.Random(number), victims, target)
            try:
                seen[outcome(partial(read_all, kind, target), target)] += 1
                check_untouched()
            except AssertionError as error:
                raise AssertionError(f"dataset {number}, {kind}, {what[:1000]}") from error
    return {"seen": seen, "memory": resident_mb()}


CHECK = Check(
    name="datasets-python",
    kind="attack",
    environment="python",
    what="datasets, checkpoints and folders of which a manifest, an index, offsets or a header are damaged, and fit "
    "each other again, read by Python in whole, by rows, by batches and by keys",
    holds="Either the values are those that the official library gives, or an error of ours names the dataset. What "
    "only an index says otherwise, `verify` finds. No file beside the dataset is opened.",
    run=run,
)
