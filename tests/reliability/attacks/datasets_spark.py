"""Datasets with damaged files, read by Spark."""

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from reliability.attacks.errors import told
from reliability.attacks.spark_session import outcome, session
from reliability.check import Check, Outcome

DATASETS = 2000


def run(scale: float) -> Outcome:
    from reliability.attacks.spark_reading import read_all
    from reliability.attacks.victims import build, damaged

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        victims, target = build(Path(folder)), Path(folder, "target")
        for number in range(int(DATASETS * scale)):
            kind, what = damaged(random.Random(number), victims, target)
            try:
                seen[outcome(partial(read_all, spark, kind, target))] += 1
            except AssertionError as error:
                raise AssertionError(f"dataset {number}, {kind}, {what[:1000]}") from error
    return Outcome(seen.total(), told(seen))


CHECK = Check(
    name="datasets-spark",
    kind="attack",
    environment="spark",
    what="datasets, checkpoints and folders of which a manifest, an index, offsets or a header are damaged, and fit "
    "each other again, read by Spark",
    holds="Either the values are those that the official library gives, or an error of ours says what is wrong. What "
    "only an index says otherwise, `verify` finds.",
    run=run,
)
