"""One syncer at a time for a staging directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from safetensors_spark._errors import StagingBusyError
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock import locked
from safetensors_spark._files.commit.lock_record import new_record, parse_record
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.publish._local_staging import explained

LOCK, OWNER = "_sync.lock", "_sync.owner"


@contextmanager
def sync_lock(staging_dir: str | os.PathLike[str]) -> Iterator[Callable[[], None]]:
    """Hold the lock of the staging directory. Gives what checks that it is still held.

    On a file system the operating system gives the lock back when its holder dies. In a store the holder shows signs of
    life, and another syncer waits until there were none for five minutes: so one that was stopped for longer has lost
    the lock when it goes on.

    Raises:
        StagingBusyError: another syncer has it, or, of the check, has taken it.
    """
    target = open_target(staging_dir)
    if not isinstance(target, LocalTarget):
        with locked(target) as held:

            def check() -> None:
                if not held.is_held():
                    raise StagingBusyError(
                        f"{target.location} is being synced by another process, which has taken over because this one "
                        "stood still for minutes. It goes on with what is pending: nothing is lost, or committed twice."
                    )

            yield check
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
        yield lambda: None
        target.delete(OWNER)
    finally:
        lock.release()
