"""Configurations of the factory that nobody should have written."""

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import outcome
from reliability.check import Check, Outcome

FILES = 20_000
# YAML that costs or does more than it shows.
TRICKS = [
    "a: &a [x]\nb: *a", "a: &a {b: *a}", "!!python/object/apply:os.system [id]", "a: !!binary aGk=", "? [a]\n: b",
    "%YAML 9.9\n---\na", "[" * 3000, "{a: " * 3000, "a: " + "9" * 5000, "a: 0x" + "f" * 5000, "a: 1e99999", "a: .nan",
    "- " * 2000 + "x", "a: |\n " + "x" * 10**6, "<<: {a: 1}", "a: !!set {x}", "a: 2026-01-01", "\ufeffa: 1",
    "a: \u2028", "a: \x00", "a: \ud7ff", "---\n---\n", "...", "a: 'x", "a: \"\\ud800\"",
]  # fmt: skip


def run(scale: float) -> Outcome:
    return attacked(attack, int(FILES * scale))


def attack(count: int) -> dict[str, Any]:
    from reliability.attacks.odd_files import SWAPS
    from safetensors_spark.factory import load_config

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "secret").mkdir()
        (folder / "secret" / "a.safetensors").write_bytes(b"secret")
        (folder / "in").mkdir()
        path = folder / "in" / "web.yaml"
        # A pipe of the shell may be one.
        swaps = [swap for what, swap in SWAPS.items() if what != "a pipe"]
        for number in range(count):
            chance = random.Random(number)
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            if number < len(swaps):
                swaps[number](path)
                shown = "no text"
            else:
                shown = _text(chance)
                path.write_bytes(shown.encode("utf-8", "surrogatepass"))
            try:
                seen[outcome(partial(load_config, path), path)] += 1
            except AssertionError as error:
                raise AssertionError(f"configuration {number}: {shown[:1000]!r}") from error
    return {"seen": seen, "attempts": count}


def _text(chance: random.Random) -> str:
    from factory.test_config import WEB
    from reliability.attacks.odd import NAMES, PATHS, TEXTS, changed_bytes

    kind = chance.randrange(4)
    if kind == 0:
        return changed_bytes(chance, WEB.encode()).decode(errors="replace")
    if kind == 1:
        return chance.choice(TRICKS) if chance.random() < 0.5 else WEB.replace("parquet", chance.choice(TRICKS), 1)
    # The value of a line, or its key, is another.
    lines = WEB.splitlines()
    at = chance.randrange(len(lines))
    before, colon, after = lines[at].partition(":")
    odd = chance.choice([*TEXTS, *NAMES, *PATHS])
    lines[at] = (
        f"{before}{colon} {odd}" if kind == 2 else f"{before[: len(before) - len(before.lstrip())]}{odd}{colon}{after}"
    )
    return "\n".join(lines)


CHECK = Check(
    name="configurations",
    kind="attack",
    environment="factory",
    what="YAML with other keys, values and bytes, anchors that refer to themselves, tags that run programs, deep "
    "nesting, numbers of thousands of digits, and folders, devices and links in the place of the file",
    holds="Each is a configuration, or an error of ours names the file, at once.",
    run=run,
)
