"""Which epoch it is, and where an iteration begins."""

from __future__ import annotations


class Position:
    """The epoch of the last iteration, or of the next one where that was set since; and where in it that one begins."""

    def __init__(self) -> None:
        self._held = False
        self.set(0, 0)

    @property
    def at(self) -> tuple[int, int]:
        """The iteration's epoch, and the first place of that epoch's order that it takes."""
        return self._epoch, self._begun_at

    @property
    def epoch(self) -> int:
        """The iteration's epoch, or the next one if all of it was taken."""
        return self._epoch

    @property
    def pending(self) -> bool:
        """Whether the next iteration is the one that was set."""
        return self._pending

    def set(self, epoch: int, place: int) -> None:
        """The next iteration is of this epoch, from this place on."""
        self._epoch, self._begun_at, self._pending = epoch, place, True

    def hold(self) -> None:
        """The next iteration is of the same epoch, even if this one takes all of it."""
        self._held = not self._pending

    def begin(self, complete: bool) -> None:
        """Begins an iteration: the one that was set, or else a whole epoch. That is the next epoch if all batches of
        the last iteration were taken.
        """
        if not self._pending:
            self.set(self._epoch + (complete and not self._held), 0)
        self._pending = self._held = False

    def end(self) -> None:
        """All batches were taken, and the caller has asked for another one."""
        self.set(self._epoch + (not self._held), 0)
