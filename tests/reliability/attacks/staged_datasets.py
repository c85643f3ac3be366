"""Damaged datasets that are staged for a repository."""

import random
import shutil
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import outcome
from reliability.check import Check, Outcome

DATASETS = 5000


def run(scale: float) -> Outcome:
    return attacked(attack, int(DATASETS * scale))


def attack(count: int) -> dict[str, Any]:
    from reliability.attacks.victims import build, damaged
    from reliability.attacks.watched import check_untouched, watch
    from safetensors_spark.publish import stage_dataset

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        built = build(folder)
        victims = {kind: built[kind] for kind in ("batches", "keys")}
        watch(folder / "secret")
        for number in range(count):
            staging = folder / "staging"
            shutil.rmtree(staging, ignore_errors=True)
            kind, what = damaged(random.Random(number), victims, folder / "target")
            staged = partial(stage_dataset, folder / "target", staging_dir=staging, path_in_repo="data")
            try:
                result = outcome(staged)
                check_untouched()
                # Nothing is staged of a dataset that is refused: the syncer would publish a half.
                assert result == "done" or not list(staging.rglob("*.meta.json")), result
            except AssertionError as error:
                raise AssertionError(f"dataset {number}, {kind}, {what[:1000]}") from error
            seen[result] += 1
    return {"seen": seen, "attempts": count}


CHECK = Check(
    name="staged-datasets",
    kind="attack",
    environment="publish",
    what="datasets of which a manifest, an index, offsets or a header are damaged, staged for a repository",
    holds="Each is staged, or an error of ours says what is wrong and nothing is staged. No file beside it is opened.",
    run=run,
)
