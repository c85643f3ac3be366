"""One syncer at a time for a staging directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from safetensors_spark._errors import StagingBusyError
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock import locked
from safetensors_spark._files.commit.lock_record import new_record, parse_record
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.publish._local_staging import explained

LOCK, OWNER = "_sync.lock", "_sync.owner"


@contextmanager
def sync_lock(staging_dir: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of the staging directory.

    On a file system the operating system gives the lock back when its holder dies. In a store the holder shows signs of
    life, and another syncer waits until there were none for five minutes.

    Raises:
        StagingBusyError: another syncer has it.
    """
    target = open_target(staging_dir)
    if not isinstance(target, LocalTarget):
        with locked(target):
            yield
        return
    from filelock import FileLock, Timeout

    target.make()
    lock = FileLock(target.folder.path / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        record = parse_record(target.read(OWNER) or b"")
        owner = f"process {record.process} on {record.host}, since {record.since}" if record else "another process"
        raise StagingBusyError(
            f"{target.location} is being synced by {owner}. Wait until it has ended, or end it."
        ) from None
    try:
        with explained(target.folder.path / OWNER):
            target.overwrite(OWNER, new_record().text())
        yield
        target.delete(OWNER)
    finally:
        lock.release()
