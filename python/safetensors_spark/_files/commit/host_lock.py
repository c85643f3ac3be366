"""A lock among the processes of one host, for work that is not a commit. A process that dies gives it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock_record import new_record, parse_record


@contextmanager
def host_lock(target: LocalTarget, name: str, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Hold `{name}.lock` in the folder, which is made. `{name}.owner` says who does.

    Args:
        busy: makes the error that is raised if another one holds it, of the words that name that one.
    """
    from filelock import FileLock, Timeout

    target.make()
    lock, owner = FileLock(target.folder.path / f"{name}.lock", timeout=0), f"{name}.owner"
    try:
        lock.acquire()
    except Timeout:
        record = parse_record(target.read(owner) or b"")
        holder = f"process {record.process} on {record.host}, since {record.since}" if record else "another process"
        raise busy(holder) from None
    try:
        # It is for the words of an error alone.
        with suppress(OSError):
            target.overwrite(owner, new_record().text())
        yield
    finally:
        with suppress(OSError):
            target.delete(owner)
        lock.release()
