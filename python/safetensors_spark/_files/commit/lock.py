"""The lock that lets one write at a time change a dataset, `_commit.lock`, as format/dataset.md defines it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from safetensors_spark._errors import LostLockError
from safetensors_spark._files.commit.lock_record import (
    LOCK,
    LockRecord,
    LockState,
    alive_file,
    new_record,
    state_of,
    takeover_file,
)
from safetensors_spark._files.commit.target import Target

_LOGGER = logging.getLogger("safetensors_spark")

_FIRST_REPORT, _NEXT_REPORT = 2.0, 30.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class CommitLock:
    """A lock that this write holds. A thread gives signs of life until it is closed."""

    def __init__(self, target: Target, record: LockRecord, acquired: float) -> None:
        """`acquired` is a `time.monotonic()` from before the lock was there."""
        self._target, self._record, self._text = target, record, record.text()
        self._alive = alive_file(record.id)
        self._beats, self._last = 0, acquired
        self._guard = threading.RLock()
        self._closed = threading.Event()
        threading.Thread(target=self._live, name=f"heartbeat of {target.location}", daemon=True).start()

    def _live(self) -> None:
        while not self._closed.wait(self._record.stale_after_ms / 10_000):
            self._beat()

    def _beat(self) -> None:
        """Show waiting writes that this one lives, by a file that gets longer."""
        with self._guard:
            if self._closed.is_set():
                return
            begun = time.monotonic()
            self._beats += 1
            try:
                self._target.overwrite(self._alive, b"\0" * self._beats)
                self._last = begun
            except OSError as error:
                _LOGGER.warning("%s cannot be written. Other writes may take the lock. (%s)", self._alive, error)

    def verify(self) -> None:
        """Raise `LostLockError` if another write has taken the lock, or may be doing it."""
        if not self.is_held():
            raise LostLockError(
                f"{self._target.location}/{LOCK} was lost to another write, because this one paused for more than "
                f"{self._record.stale_after_ms // 1000} seconds. Nothing was changed; write again."
            )

    def is_held(self) -> bool:
        with self._guard:
            return (self._is_fresh() or self._is_renewed()) and self._target.read(LOCK) == self._text

    def _is_fresh(self) -> bool:
        """Whether no waiting write can have seen this lock unchanged for long enough."""
        return time.monotonic() - self._last < self._record.stale_after_ms / 5000

    def _is_renewed(self) -> bool:
        # A write that takes over creates its file first, and then looks for a sign of life. So one of the two notices
        # the other.
        self._beat()
        return self._is_fresh() and self._target.status(takeover_file(self._text)) is None

    def close(self) -> None:
        """Give the lock back. What was done under it is done: nothing that fails here is an error."""
        with self._guard:
            try:
                if self.is_held():
                    self._target.delete(LOCK)
                else:
                    _LOGGER.warning(
                        "%s/%s was lost to another write, so it is not deleted.", self._target.location, LOCK
                    )
            except OSError as error:
                _LOGGER.warning("%s cannot be deleted. Other writes wait until it is stale. (%s)", LOCK, error)
            self._closed.set()
            if self._beats:
                with suppress(OSError):
                    self._target.delete(self._alive)


@contextmanager
def locked(target: Target, record: LockRecord | None = None) -> Iterator[CommitLock]:
    """Hold the lock of the dataset: wait until no other write does, as long as its holder lives."""
    target.make()
    lock = _Wait(target, record or new_record()).acquire()
    try:
        yield lock
    finally:
        lock.close()


class _Wait:
    """A write that waits.

    It takes the lock of a dead holder, which it tells by its own clock and by what it sees itself: other machines'
    clocks may differ. It must be the only one that removes a lock, which needs a lock again, named after the one that
    is removed.
    """

    def __init__(self, target: Target, record: LockRecord, clock: Callable[[], float] = time.monotonic) -> None:
        self._target, self._record, self._clock = target, record, clock
        self._begun = clock()
        self._tell = self._begun + _FIRST_REPORT
        self._seen: dict[str, tuple[LockState, float]] = {}

    def acquire(self) -> CommitLock:
        before = self._clock()
        while not self._attempt(LOCK):
            self._report()
            # More and more seldom, as each attempt is several requests to an object store.
            time.sleep(min(_LONGEST_PAUSE, _SHORTEST_PAUSE + (self._clock() - self._begun) / 20))
            before = self._clock()
        return CommitLock(self._target, self._record, before)

    def _attempt(self, lock: str) -> bool:
        """Create the lock, or remove one that is stale. Returns whether it was created."""
        if self._target.create_exclusively(lock, self._record.text()):
            return True
        state = state_of(self._target, lock)
        if state is not None and self._is_stale(lock, state):
            self._remove(lock, state)
        return False

    def _is_stale(self, lock: str, state: LockState) -> bool:
        seen = self._seen.get(lock)
        if seen is None or seen[0] != state:
            self._seen[lock] = (state, self._clock())
        return self._clock() - self._seen[lock][1] > state.stale_seconds

    def _remove(self, lock: str, state: LockState) -> None:
        claim = takeover_file(state.text)
        if not self._attempt(claim):
            return
        try:
            if state_of(self._target, lock) == state:
                _LOGGER.warning(
                    "%s/%s is removed: it has not changed for %d s, so its holder is dead (%s).",
                    self._target.location, lock, state.stale_seconds, _described(state),
                )  # fmt: skip
                self._target.delete(lock)
                if state.holder:
                    self._target.delete(alive_file(state.holder.id))
        finally:
            self._target.delete(claim)

    def _report(self) -> None:
        now = self._clock()
        if LOCK not in self._seen or now <= self._tell:
            return
        self._tell = now + _NEXT_REPORT
        state, since = self._seen[LOCK]
        _LOGGER.warning(
            "This write has waited for %d s for another one, which holds %s/%s (%s). That one has shown no sign of "
            "life for %d s; after %d s its lock is removed.",
            now - self._begun, self._target.location, LOCK, _described(state), now - since, state.stale_seconds,
        )  # fmt: skip


def _described(state: LockState) -> str:
    return str(state.holder) if state.holder else "it does not say whose it is"
