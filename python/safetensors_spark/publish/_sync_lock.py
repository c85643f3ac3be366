"""One syncer at a time for a staging directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from safetensors_spark._errors import StagingBusyError
from safetensors_spark._files.commit.host_lock import host_lock
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock import locked
from safetensors_spark._files.commit.target import open_target

_NAME = "_sync"


@contextmanager
def sync_lock(staging_dir: str | os.PathLike[str]) -> Iterator[Callable[[], None]]:
    """Hold the lock of the staging directory. Gives what checks that it is still held.

    On a file system the operating system gives the lock back when its holder dies. In a store the holder shows signs of
    life, and another syncer waits until there were none for five minutes: so one that was stopped for longer has lost
    the lock when it continues.

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
                        "paused for minutes. It continues with the pending files: nothing is lost, or committed twice."
                    )

            yield check
        return
    with host_lock(target, _NAME, partial(_busy, target.location)):
        yield lambda: None


def _busy(location: str, owner: str) -> StagingBusyError:
    return StagingBusyError(f"{location} is being synced by {owner}. Wait until it ends, or end it.")
