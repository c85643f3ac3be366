"""Syncs in processes of their own, against a server of the Hub's API."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hub

REPO = "me/points"

_BEGIN = """
import json, os, sys
from pathlib import Path
from safetensors_spark import *
from safetensors_spark.publish import *
from safetensors_spark.publish import _sync
_sync._FIRST_PAUSE_S = 0.01
staging = Path(os.environ["STAGING"])
def sync(**options): return sync_pending(staging, repo_id="me/points", **options)
def show(report): print(json.dumps(vars(report)))
"""


def run(
    server: hub.Server, staging: Path, code: str, *, xet: bool = True, token: str | None = hub.WRITE, expect: int = 0
) -> str:
    """What a process that runs the code prints. It ends with the code that is expected."""
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + textwrap.dedent(code)],
        env={**server.environment(token, xet), "STAGING": str(staging)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout.strip()


def sync(
    server: hub.Server, staging: Path, *, xet: bool = True, token: str | None = hub.WRITE, **options: Any
) -> dict[str, Any]:
    """The report of a sync."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    found: dict[str, Any] = json.loads(run(server, staging, f"show(sync({arguments}))", xet=xet, token=token))
    return found


def tree(server: hub.Server) -> Mapping[str, str]:
    """The SHA-256 or Git's name of each file of the branch `main`."""
    found: Mapping[str, str] = server.history(REPO)[-1]["tree"]
    return {path: one for path, one in found.items() if path != ".gitattributes"}
