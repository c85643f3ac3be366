"""Files that are none, in datasets that Python and the command read."""

import signal
import tempfile
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from reliability.attacks.errors import outcome, told
from reliability.bounded import call, resident_mb
from reliability.check import Check, Outcome

SECONDS = 3600
# Of one action; nothing here takes a tenth of a second on a machine that does nothing else.
DEADLINE_S = 60
# The short form takes each of so many, which have no factor in common with how many kinds there are.
EACH = 7


def run(scale: float) -> Outcome:
    found = call(attack, 1 if scale >= 0.1 else EACH, seconds=SECONDS, addresses=4 << 30)
    return Outcome(found["attempts"], f"{told(Counter(found['seen']))}; at most {found['memory']} MB of memory")


def attack(each: int) -> dict[str, Any]:
    from reliability.attacks.odd_files import scenes
    from reliability.attacks.reading import read_all
    from reliability.attacks.victims import build
    from safetensors_spark.dataset import inspect, verify

    signal.signal(signal.SIGALRM, _late)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        victims = build(Path(folder))
        for kind, what, path in islice(scenes(victims, Path(folder)), 0, None, each):
            for action in (partial(read_all, kind, path), partial(inspect, path), partial(verify, path)):
                signal.alarm(DEADLINE_S)
                try:
                    seen[outcome(action, path)] += 1
                except AssertionError as error:
                    raise AssertionError(f"{kind}: {what}") from error
                finally:
                    signal.alarm(0)
    return {"seen": seen, "attempts": seen.total(), "memory": resident_mb()}


def _late(*_: object) -> None:
    raise AssertionError(f"it is not done after {DEADLINE_S} s")


CHECK = Check(
    name="odd-files-python",
    kind="attack",
    environment="python",
    what="pipes, folders, devices, empty files, files of a terabyte without bytes, and links to themselves, to "
    "nowhere and to other folders, in the place of each file of a dataset, read by Python, `inspect` and "
    "`verify`",
    holds="Each is what the official library gives, or an error of ours that names the dataset, at once and in 4 GB "
    "of addresses.",
    run=run,
)
