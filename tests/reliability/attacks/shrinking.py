"""Files that are cut off, replaced and written to while they are read."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from signal import SIGBUS
from typing import Any

from reliability.attacks.errors import outcome, told
from reliability.bounded import call
from reliability.check import Check, Outcome

PROCESSES, SECONDS = 200, 0.2
ROWS = 200_000

# Cuts a file to half, and makes it whole again by a copy in its place, over and over.
CUTTER = """
import os, random, shutil, sys, time
whole, path = sys.argv[1:]
while True:
    try:
        os.truncate(path, random.randrange(os.path.getsize(whole)))
        time.sleep(random.random() / 50)
        shutil.copy(whole, path + ".new")
        os.replace(path + ".new", path)
        time.sleep(random.random() / 50)
    except FileNotFoundError:
        break
"""


def run(scale: float) -> Outcome:
    import numpy as np
    from safetensors.numpy import save_file

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "in", "a.safetensors")
        path.parent.mkdir()
        whole = Path(scratch, "whole")
        save_file({"x": np.arange(ROWS)}, whole)
        shutil.copy(whole, path)
        with subprocess.Popen([sys.executable, "-c", CUTTER, str(whole), str(path)]) as cutter:
            try:
                for _ in range(max(10, round(PROCESSES * scale))):
                    found = call(read, str(path), SECONDS, seconds=600, may_end_by=[SIGBUS])
                    seen.update({"bus error": 1} if found is None else found)
            finally:
                cutter.kill()
    assert len(seen) > 1, f"the file was never cut off while it was read, or always: {seen}"
    return Outcome(seen.total(), told(seen))


def read(path: str, seconds: float) -> dict[str, int]:
    """Raises AssertionError where rows are wrong."""
    from safetensors_spark.dataset import open_dataset, open_store, verify

    seen: Counter[str] = Counter()
    folder = Path(path).parent
    actions: list[Callable[[], Any]] = [
        partial(_rows, open_dataset, folder),
        partial(_batches, open_dataset, folder),
        partial(_key, open_store, Path(path)),
        partial(verify, folder),
    ]
    until = time.monotonic() + seconds
    while time.monotonic() < until or not seen:
        for action in actions:
            seen[outcome(action)] += 1
    return seen


def _rows(opened: Any, path: Path) -> None:
    dataset = opened(path)
    for row in range(0, len(dataset), ROWS // 50):
        assert dataset[row]["x"] == row


def _batches(opened: Any, path: Path) -> None:
    first = 0
    for batch in opened(path).batches(10_000):
        assert batch["x"][0] == first
        first += 10_000


def _key(opened: Any, path: Path) -> None:
    store = opened(path)
    for _ in range(5):
        # A copy: an array that looks at the file shares its end.
        assert store.stack(["x"]).shape == (1, ROWS)


CHECK = Check(
    name="shrinking-files",
    kind="attack",
    environment="python",
    what="a file that another process cuts off anywhere and puts whole into its place again, while rows, batches and "
    "tensors of it are read and verified",
    holds="The rows are right, or an error of ours says that the file is cut off, has changed, or is no safetensors "
    "file, or the system ends the process with a bus error, as docs/limits.md says. No row is wrong.",
    run=run,
)
