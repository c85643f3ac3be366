"""Folders of this machine for what is too much for memory."""

from __future__ import annotations

import tempfile

# Of a worker, which may be killed: its caller deletes what is left in it.
_place: str | None = None


def use_scratch(place: str) -> None:
    """Make all folders of this process in a folder."""
    global _place
    _place = place


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder that is deleted with what is in it."""
    return tempfile.TemporaryDirectory(prefix="safetensors-spark-", dir=_place)
