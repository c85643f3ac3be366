"""The command, on datasets with damaged files and on files that are none, with arguments that nobody should give."""

import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from reliability.attacks.errors import told
from reliability.check import Check, Outcome

RUNS = 400
SECONDS = 600


def run(scale: float) -> Outcome:
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for arguments in islice(_runs(Path(folder)), max(4, int(RUNS * scale))):
            seen[_said(arguments, Path(folder))] += 1
    return Outcome(seen.total(), told(seen))


def _runs(folder: Path) -> Iterator[list[str]]:
    """Each in a fresh dataset, if it has one."""
    from reliability.attacks.odd import NAMES, PATHS
    from reliability.attacks.odd_files import scenes
    from reliability.attacks.victims import build, damaged

    victims = build(folder)
    odd = scenes(victims, folder)
    for number in range(RUNS):
        chance = random.Random(number)
        kind = number % 4
        if kind == 0:
            # Not the first ones alone.
            _, _, path = next(islice(odd, 1, None))
            yield [chance.choice(["inspect", "verify"]), str(path)]
        elif kind == 3:
            text = chance.choice([*NAMES, *PATHS]).replace("\0", "")
            option = chance.choice([["inspect", "--limit"], ["verify", "--workers"], ["verify"], ["inspect"], []])
            yield [*option, text, *chance.choice([[], [str(victims["batches"])]])]
        else:
            damaged(chance, victims, folder / "target")
            shutil.rmtree(folder / "made", ignore_errors=True)
            action = chance.choice([["inspect", "--json"], ["inspect", "--sample", "3"], ["verify"], ["convert"]])
            yield [*action, str(folder / "target"), *([str(folder / "made")] if action == ["convert"] else [])]


def _said(arguments: list[str], folder: Path) -> str:
    """How it ended. Raises AssertionError for a traceback, for no message, or for one without an end."""
    command = [sys.executable, "-m", "safetensors_spark", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd=folder)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{arguments} is not done after {SECONDS} s") from None
    said, shown = done.stderr.decode(errors="replace"), done.stdout.decode(errors="replace")
    assert done.returncode in (0, 1, 2), f"{arguments} ended with {done.returncode}: {said[-3000:]}"
    assert "Traceback" not in said + shown, f"{arguments}: {said[-3000:]}"
    assert len(said) < 10_000, f"{arguments}: {said[:1000]}"
    if done.returncode == 2:
        assert "safetensors-spark" in said, f"{arguments}: no message: {said}"
    if done.returncode == 1:
        assert shown.strip(), f"{arguments}: it says nothing"
    return f"exit {done.returncode}"


CHECK = Check(
    name="command",
    kind="attack",
    environment="python",
    what="`inspect`, `verify` and `convert` as processes, on damaged datasets, on pipes, folders, devices, links and "
    "files of a terabyte in the place of their files, and with names of every plane of Unicode as arguments",
    holds="Each ends with 0, 1 or 2, in time, with a message where it is not 0, and without a traceback.",
    run=run,
)
