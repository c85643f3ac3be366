"""Paths as all workers name them."""

from __future__ import annotations

import os
from pathlib import Path


def absolute(path: str) -> str:
    """The path as workers in other folders name it."""
    return path if "://" in path else str(Path(path).expanduser().absolute())


def identity(path: str) -> str:
    """One text for all paths of the same file: through links, with `..`, or with a slash at the end."""
    return path.rstrip("/") if "://" in path else os.path.realpath(Path(path).expanduser())
