"""Files that are none, in datasets that Spark reads."""

import tempfile
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from reliability.attacks.errors import told
from reliability.attacks.spark_session import outcome, session
from reliability.check import Check, Outcome

# The short form takes each of so many, which have no factor in common with how many kinds there are.
EACH = 13


def run(scale: float) -> Outcome:
    from reliability.attacks.odd_files import scenes
    from reliability.attacks.victims import build

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        victims = build(Path(folder))
        for kind, what, path in islice(scenes(victims, Path(folder)), 0, None, 1 if scale >= 0.1 else EACH):
            try:
                seen[outcome(partial(_read, spark, kind, path))] += 1
            except AssertionError as error:
                raise AssertionError(f"{kind}: {what}") from error
    return Outcome(seen.total(), told(seen))


def _read(spark: Any, kind: str, path: Path) -> None:
    options = {"layout": "rows", "decode": "true"} if kind == "batches" else {"layout": "long"}
    for row in spark.read.format("safetensors").options(**options).load(str(path)).collect():
        # Of the folder beside it. A link that leads there is followed, as the official library does.
        assert kind != "batches" or row["n"] < 600


CHECK = Check(
    name="odd-files-spark",
    kind="attack",
    environment="spark",
    what="pipes, folders, devices, empty files, files of a terabyte without bytes, and links to themselves, to "
    "nowhere and to other folders, in the place of each file of a dataset, read by Spark with a heap of 1 GB",
    holds="Each is read, or an error of ours says what is wrong, and the driver lives.",
    run=run,
)
