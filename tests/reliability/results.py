"""docs/reliability.json: what was seen of each check, by name."""

import fcntl
import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from reliability.check import Check, Outcome
from sbt import ROOT, java

RESULTS = ROOT / "docs" / "reliability.json"

Result = dict[str, Any]


def results() -> dict[str, Result]:
    found: dict[str, Result] = json.loads(RESULTS.read_text())
    return found


def record(check: Check, outcome: Outcome, seconds: float) -> None:
    """At once, so that what was seen stays when a later check fails or is interrupted; others may run beside it."""
    found = _result(check, outcome, seconds)
    with RESULTS.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        merged = {**results(), check.name: found}
        RESULTS.write_text(json.dumps(merged, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def _result(check: Check, outcome: Outcome, seconds: float) -> Result:
    return {
        "kind": check.kind,
        "environment": check.environment,
        "what": check.what,
        "holds": check.holds,
        "attempts": outcome.attempts,
        "seen": outcome.seen,
        "seconds": round(seconds, 1),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": _machine(check.environment),
        "commit": _said("git", "rev-parse", "--short=10", "HEAD"),
    }


def _machine(environment: str) -> str:
    parts = [f"{os.cpu_count()} cores", f"Python {platform.python_version()}"]
    if environment == "spark":
        parts += [f"Spark {version('pyspark')}", _said(java(), "--version").split("\n")[0]]
    return ", ".join(parts)


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
