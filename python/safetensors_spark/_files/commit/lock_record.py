"""What `_commit.lock` says of the write that holds it, and the names of the files beside it."""

from __future__ import annotations

import json
import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import md5

from safetensors_spark._files.commit.local_target import Status
from safetensors_spark._files.commit.target import Target

LOCK = "_commit.lock"

# How long a holder may be silent: ten times the interval of its signs of life.
STALE_MILLIS = 300_000


@dataclass(frozen=True)
class LockRecord:
    """A holder. No two locks have the same `id`."""

    id: str
    application: str
    process: int
    host: str
    since: str
    stale_after_ms: int = STALE_MILLIS

    def text(self) -> bytes:
        return json.dumps(vars(self), separators=(",", ":")).encode()

    def __str__(self) -> str:
        return f"application {self.application}, process {self.process} on {self.host}, since {self.since}"


def new_record(stale_after_ms: int = STALE_MILLIS) -> LockRecord:
    """A new holder in this process."""
    since = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return LockRecord(str(uuid.uuid4()), "safetensors-spark", os.getpid(), socket.gethostname(), since, stale_after_ms)


def parse_record(text: bytes) -> LockRecord | None:
    """None for a lock that is not completely written."""
    try:
        root = json.loads(text)
        return LockRecord(
            # Names of files contain it.
            str(uuid.UUID(root["id"])),
            str(root["application"]),
            int(root["process"]),
            str(root["host"]),
            str(root["since"]),
            int(root["stale_after_ms"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True)
class LockState:
    """A lock as it is found. While its holder lives, this changes.

    Attributes:
        alive: the holder's sign of life; None before the first.
    """

    text: bytes
    written: Status
    alive: Status | None

    @property
    def holder(self) -> LockRecord | None:
        return parse_record(self.text)

    @property
    def stale_seconds(self) -> float:
        holder = self.holder
        return (holder.stale_after_ms if holder else STALE_MILLIS) / 1000


def state_of(target: Target, lock: str) -> LockState | None:
    """None if there is no lock."""
    written, text = target.status(lock), target.read(lock)
    if written is None or text is None:
        return None
    holder = parse_record(text)
    return LockState(text, written, target.status(alive_file(holder.id)) if holder else None)


def alive_file(holder: str) -> str:
    """The file by which a holder shows that it lives."""
    return f"_commit-{holder}.alive"


def takeover_file(text: bytes) -> str:
    """The file that a write must create before it may remove the lock of this text."""
    # Java's name-based UUID of the bytes alone, without a namespace.
    name = uuid.UUID(bytes=md5(text, usedforsecurity=False).digest(), version=3)
    return f"_commit-{name}.takeover"
