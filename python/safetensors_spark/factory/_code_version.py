"""The version of the code that a stage's operators have."""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors_spark.factory._pipeline import Stage

_PACKAGE = "safetensors_spark"


def code_version(stage: Stage, code: str) -> str:
    """The version of this package if all operators, and the functions that they call, are its own; else `git:<sha>` of
    the project that defines others.

    `-dirty` follows where the checkout has changes that are not committed. Without Git, the stage's fingerprint `code`
    follows the package's version.
    """
    package = f"safetensors-spark {version('safetensors-spark')}"
    files = set(_files(stage))
    if not files:
        return package
    commits = {_commit(file) for file in files}
    if None in commits:
        return f"{package}+{code}"
    return f"git:{','.join(sorted(str(one) for one in commits))}"


def _files(stage: Stage) -> Iterator[Path | None]:
    codes: list[Any] = [code for operator in stage.operators for code in (type(operator), *operator.functions)]
    for one in codes:
        if (one.__module__ or "").partition(".")[0] != _PACKAGE:
            try:
                yield Path(inspect.getfile(inspect.unwrap(one))).absolute()
            except (OSError, TypeError):
                # It was defined at a prompt.
                yield None


def _commit(file: Path | None) -> str | None:
    """The commit of the checkout that has the file; None if no checkout has it."""
    if file is None or _git(file, "ls-files", "--error-unmatch", file.name) is None:
        return None
    sha = _git(file, "rev-parse", "HEAD")
    changed = _git(file, "status", "--porcelain", "--untracked-files=no")
    return f"{sha}-dirty" if sha and changed else sha


def _git(file: Path, *arguments: str) -> str | None:
    """What Git prints; None if it fails, or does not exist."""
    command = ["git", "-C", str(file.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
