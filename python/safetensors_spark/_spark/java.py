"""The Java that Spark will start: the one under `JAVA_HOME`, or else the one on the `PATH`."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


@dataclass(frozen=True)
class Java:
    """A Java launcher."""

    path: str
    origin: str
    """How it was found: `JAVA_HOME` or `PATH`."""
    version: int | None
    """The feature release, as 17; None if it does not run."""


def find_java(env: Mapping[str, str]) -> Java | None:
    """What Spark's launcher would take in this environment; None if there is nothing to take."""
    if home := env.get("JAVA_HOME"):
        return _launcher("JAVA_HOME", str(Path(home, "bin")))
    return java_on_path(env)


def java_on_path(env: Mapping[str, str]) -> Java | None:
    """The `java` on the `PATH`."""
    return _launcher("PATH", env.get("PATH", ""))


def _launcher(origin: str, folders: str) -> Java | None:
    path = shutil.which("java", path=folders)
    return Java(path, origin, _version(path)) if path else None


def _version(java: str) -> int | None:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(said)
    return int(match[1]) if match else None
