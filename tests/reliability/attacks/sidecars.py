"""Sidecars, staged datasets and folders of staging that nobody should have written, on their way to a repository."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import outcome
from reliability.check import Check, Outcome

STAGINGS = 5000


def run(scale: float) -> Outcome:
    return attacked(attack, int(STAGINGS * scale))


def attack(count: int) -> dict[str, Any]:
    from reliability.attacks.odd import changed_json
    from reliability.attacks.odd_files import SWAPS
    from safetensors_spark.publish import (
        list_pending,
        move_to,
        prune_orphans,
        remaining_budget,
        retry_failed,
    )
    from staging_samples import stage_bytes

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "secret").mkdir()
        (folder / "secret" / "a.safetensors").write_bytes(b"secret")
        for number in range(count):
            chance, staging = random.Random(number), folder / "staging"
            shutil.rmtree(staging, ignore_errors=True)
            names = ["a.parquet", "b.parquet"]
            for name in names:
                stage_bytes(staging, name, dataset={"id": "d", "prefix": "p", "role": "shard"})
            move_to(list_pending(staging)[1], staging, chance.choice(["failed", "synced", "pending"]))
            victim = chance.choice(sorted(path for path in staging.rglob("*") if path.is_file()))
            if chance.random() < 0.8:
                content = changed_json(chance, victim.read_bytes()) if victim.suffix == ".json" else chance.randbytes(9)
                victim.write_bytes(content)
            else:
                victim.unlink()
                chance.choice(list(SWAPS.values()))(victim)
            if chance.random() < 0.2:
                (staging / "pending" / "c.parquet").symlink_to("../../secret/a.safetensors")
            actions: list[Callable[[], Any]] = [
                partial(list_pending, staging),
                partial(remaining_budget, staging),
                partial(retry_failed, staging),
                partial(prune_orphans, staging, older_than_s=0),
                partial(_move_all, staging),
            ]
            for action in actions:
                try:
                    seen[outcome(action)] += 1
                except AssertionError as error:
                    raise AssertionError(f"staging {number}: {victim.name} {_shown(victim)}") from error
            assert (folder / "secret" / "a.safetensors").read_bytes() == b"secret", f"staging {number}"
    return {"seen": seen, "attempts": seen.total()}


def _move_all(staging: Path) -> None:
    from safetensors_spark.publish import list_pending, move_to

    for shard in list_pending(staging):
        move_to(shard, staging, "synced")


def _shown(path: Path) -> str:
    return repr(path.read_bytes()[:500]) if path.is_file() and path.stat().st_size < 1 << 20 else "is no file"


CHECK = Check(
    name="sidecars",
    kind="attack",
    environment="publish",
    what="staging directories whose sidecars are damaged, or in which pipes, folders, devices, links and files of a "
    "terabyte replace bodies and sidecars: listed, moved, retried and pruned",
    holds="Each call is done, or an error of ours says what is wrong. A file that a link leads to outside of the "
    "directory is as it was.",
    run=run,
)
