"""How to run plans, whatever they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """How to run plans.

    Attributes:
        memory: bytes that a task may keep rows in.
        quarantines: keep rows apart for which a function fails.
        resume: continue from what an earlier run has made.
        work_dir: where runs have their folders.
        shared: objects that functions may ask for, by name.
    """

    memory: int
    quarantines: bool = False
    resume: bool = True
    work_dir: str | None = None
    shared: Mapping[str, Any] = field(default_factory=dict)
