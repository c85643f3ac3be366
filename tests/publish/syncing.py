"""Syncs in processes of their own, against a server of the Hub's API."""

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import hub
from forks import Fork, module_work, run_code

REPO = "me/points"

_BEGIN = """
import json, os, sys
from pathlib import Path
from safetensors_spark import *
from safetensors_spark.publish import *
from safetensors_spark.publish import _retries
_retries._FIRST_PAUSE_S = 0.01
staging = Path(os.environ["STAGING"])
def sync(**options): return sync_pending(staging, repo_id="me/points", **options)
def show(report): print(json.dumps(vars(report)))
"""


def run(
    server: hub.Server, staging: Path, code: str, *, xet: bool = True, token: str | None = hub.WRITE, expect: int = 0
) -> str:
    """What a process that runs the code prints. It ends with the code that is expected."""
    environment = {**server.environment(token, xet), "STAGING": str(staging)}
    done = run_code(_BEGIN + textwrap.dedent(code), environment)
    assert done.returncode == expect, done.stderr
    return done.stdout.strip()


def sync(
    server: hub.Server, staging: Path, *, xet: bool = True, token: str | None = hub.WRITE, **options: Any
) -> dict[str, Any]:
    """The report of a sync."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    found: dict[str, Any] = json.loads(run(server, staging, f"show(sync({arguments}))", xet=xet, token=token))
    return found


def publish(
    server: hub.Server, *args: object, xet: bool = True, token: str | None = hub.WRITE, **variables: str | None
) -> CompletedProcess[str]:
    """`safetensors-spark publish` with these arguments. Variables of its environment that are None are not set."""

    def work() -> None:
        from safetensors_spark.publish import _retries

        _retries._FIRST_PAUSE_S = 0.01
        module_work("safetensors_spark", ["publish", *map(str, args)])()

    changed = {**server.environment(token, xet), **variables}
    with Fork(work, {name: value for name, value in changed.items() if value is not None}) as fork:
        return fork.done()


@contextmanager
def counted_requests(folder: Path) -> Iterator[None]:
    """Each request to the Hub is two changes of the folder, one before it and one after it: see `killing.kill_at`."""
    # The client of this process, which may be a fork.
    from safetensors_spark.publish import _hub

    call = _hub.HubRepo._call

    def counted(self: Any, request: Any) -> Any:
        os.utime(folder)
        found = call(self, request)
        os.utime(folder)
        return found

    with patch.object(_hub.HubRepo, "_call", counted):
        yield


def counted_sync(staging: Path) -> None:
    """Sync in this process, with `counted_requests`."""
    from safetensors_spark.publish import sync_pending

    with counted_requests(staging):
        sync_pending(staging, repo_id=REPO)


def tree(server: hub.Server) -> Mapping[str, str]:
    """The SHA-256 or Git's name of each file of the branch `main`."""
    found: Mapping[str, str] = server.history(REPO)[-1]["tree"]
    return {path: one for path, one in found.items() if path != ".gitattributes"}
