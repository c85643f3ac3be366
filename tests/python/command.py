"""Runs the command as a user does: in a process of its own, its output in a pipe."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(
    *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, python: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """The finished process; `env` is laid over the environment, an empty value takes a variable away.

    `python` are options of the interpreter.
    """
    merged = {name: value for name, value in {**os.environ, **(env or {})}.items() if value}
    return subprocess.run(
        [sys.executable, *python, "-m", "safetensors_spark", *args], capture_output=True, text=True, env=merged, cwd=cwd
    )
