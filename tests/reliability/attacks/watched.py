"""Tells of each file that Python opens below a folder."""

import os
import sys
from pathlib import Path
from typing import Any

_opened: list[str] = []
_watched: list[str] = []


def watch(folder: Path) -> None:
    """From now on, and for the rest of this process: hooks cannot be removed."""
    if not _watched:
        sys.addaudithook(_hook)
    _watched.append(str(folder.resolve()))


def check_untouched() -> None:
    """Raises AssertionError if a file below one of the folders was opened, listed or removed."""
    assert not _opened, f"outside of the dataset: {_opened}"


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.link", "os.truncate", "os.mkdir"):
        for one in arguments[:2]:
            if isinstance(one, str | bytes):
                path = os.path.realpath(os.fsdecode(one)) if b"\0" not in os.fsencode(one) else ""
                if any(path.startswith(folder) for folder in _watched):
                    _opened.append(f"{event} {path}")
