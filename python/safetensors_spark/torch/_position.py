"""Which epoch it is, for all copies of a dataset: the main process's, and those of a DataLoader's workers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.utils.data import get_worker_info

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark.dataset._forks import Forked
from safetensors_spark.dataset._position import Position

# What the main process did: set where the next iteration begins, begin one itself, or hold the epoch of its own
# iteration or of the workers'.
_SET, _BEGUN, _HELD, _HELD_OF_WORKERS = range(4)

# Rows of the shared memory: the last setting's serial, the last iteration's row, and the number of the last iteration
# that has ended; some settings; some iterations; for each worker the number of its last iteration. It is small, as
# PyTorch copies more than 32 KiB in threads, for which a forked process would wait for ever.
_LAST, _SETTINGS, _ITERATIONS, _WORKERS = 0, range(1, 5), range(5, 69), range(69, 269)
_COLUMNS = 5
_MOST_WORKERS = len(_WORKERS) * _COLUMNS


class _Setting(NamedTuple):
    """The main process's last word."""

    serial: int
    what: int
    epoch: int
    place: int


class _Iteration(NamedTuple):
    """An iteration of workers.

    `name` is the same in all its workers, `number` is greater than those of iterations before, and `serial` is that of
    the last setting then.
    """

    name: int
    number: int
    serial: int
    epoch: int
    place: int


class SharedPosition(Forked, Position):
    """A position that all copies of a dataset share.

    A DataLoader copies the dataset to its workers, once for each iteration, or once for all of them. Workers are ahead
    of what is taken, and cannot know whether all of it is. So each iteration of workers counts as a full pass.

    The worker that begins an iteration first decides where, and the others find that under the iteration's name. Some
    of them may begin it when others are in the next one already. Workers write iterations, the main process writes
    settings, so that no process replaces what another one has written meanwhile. Processes have no lock in common:
    one that died would keep it. Other processes than workers, to which the dataset is sent or which are forked, have a
    position of their own.
    """

    def __init__(self) -> None:
        self._shared = torch.zeros((_WORKERS.stop, _COLUMNS), dtype=torch.int64)
        # In a worker: how many iterations it has begun, the last one of them, and where a state says to continue.
        self._iterations = 0
        self._own: _Iteration | None = None
        self._resumed: tuple[int, int] | None = None
        Forked.__init__(self)
        Position.__init__(self)

    def _begin(self) -> None:
        # What was there when this process got it, until it is known whether the process is a worker.
        self._apart = self._shared.clone() if self._shared.is_shared() else None
        self._shared.share_memory_()

    @property
    def _words(self) -> torch.Tensor:
        if self._apart is not None:
            if get_worker_info() is None:
                self._shared = self._apart.share_memory_()
            self._apart = None
        return self._shared

    @property
    def at(self) -> tuple[int, int]:
        last = self._own or self._newest()
        return last.epoch, last.place

    @property
    def epoch(self) -> int:
        last = self._own or self._newest()
        return last.epoch + (isinstance(last, _Iteration) and last.number == self._word(2))

    @property
    def pending(self) -> bool:
        last = self._newest()
        return isinstance(last, _Setting) and last.what == _SET

    @property
    def by_workers(self) -> bool:
        """Whether the last iteration was that of worker processes."""
        last = self._newest()
        return get_worker_info() is None and (isinstance(last, _Iteration) or last.what == _HELD_OF_WORKERS)

    def set(self, epoch: int, place: int) -> None:
        self._say(_SET, epoch, place)

    def hold(self) -> None:
        if not self.pending:
            self._say(_HELD_OF_WORKERS if self.by_workers else _HELD, *self.at)

    def begin(self, complete: bool) -> None:
        worker = get_worker_info()
        if worker is None:
            self._say(_BEGUN, *self._next(self._newest(), complete))
            return
        self._iterations += 1
        # A DataLoader draws a seed for each iteration, and workers that persist count.
        name = 1 + (worker.seed - worker.id + self._iterations) % (1 << 62)
        if worker.id >= _MOST_WORKERS:
            raise SafetensorsSparkError(f"a DataLoader of this dataset has up to {_MOST_WORKERS} workers.")
        mine = _WORKERS[worker.id // _COLUMNS], worker.id % _COLUMNS
        # Before the iteration is looked for: what begins meanwhile is not the one before it.
        setting, before = self._setting(), self._last_iteration()
        if self._own is not None and self._own.number > before.number:
            before = self._own
        found = self._iteration(name)
        # Who seeds PyTorch again draws the same seed again: a worker is in an iteration of the same name only once.
        if found is None or found.number <= int(self._words[mine]):
            found = self._first(name, before, setting)
        self._own, self._resumed = found, None
        self._words[mine] = found.number

    def end(self) -> None:
        last = self._newest()
        held = isinstance(last, _Setting) and last.what == _HELD
        self.set(last.epoch + (not held), 0)

    def ended(self) -> None:
        """The worker that makes the last batch has made it, and is asked for another one."""
        if self._own is not None:
            self._words[_LAST, 2] = self._own.number

    def resume(self, epoch: int, begun_at: int) -> None:
        """A worker continues with an iteration that was begun at this place; all its workers say the same."""
        self._resumed = epoch, begun_at

    def _next(self, last: _Setting | _Iteration, complete: bool) -> tuple[int, int]:
        """Where an iteration begins after this."""
        if isinstance(last, _Iteration):
            return last.epoch + 1, 0
        if last.what == _SET:
            return last.epoch, last.place
        return last.epoch + (complete and last.what == _BEGUN), 0

    def _first(self, name: int, before: _Iteration, setting: _Setting) -> _Iteration:
        """Begins an iteration that no other worker has begun."""
        epoch, place = self._resumed or self._next(_newer(setting, before), complete=False)
        begun = _Iteration(name, before.number + 1, setting.serial, epoch, place)
        row = _ITERATIONS[name % len(_ITERATIONS)]
        self._words[row, 1:] = torch.tensor(begun[1:])
        self._words[row, 0] = name
        if self._last_iteration().number < begun.number:
            self._words[_LAST, 1] = row
        return begun

    def _newest(self) -> _Setting | _Iteration:
        return _newer(self._setting(), self._last_iteration())

    def _setting(self) -> _Setting:
        return _Setting(*self._words[_row(self._word(0))].tolist()[:4])

    def _say(self, what: int, epoch: int, place: int) -> None:
        serial = self._word(0) + 1
        self._words[_row(serial), :4] = torch.tensor([serial, what, epoch, place])
        self._words[_LAST, 0] = serial

    def _last_iteration(self) -> _Iteration:
        return _Iteration(*self._words[self._word(1) or _ITERATIONS[0]].tolist())

    def _iteration(self, name: int) -> _Iteration | None:
        found = _Iteration(*self._words[_ITERATIONS[name % len(_ITERATIONS)]].tolist())
        return found if found.name == name else None

    def _word(self, column: int) -> int:
        return int(self._words[_LAST, column])

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        Forked.__init__(self)


def _newer(setting: _Setting, iteration: _Iteration) -> _Setting | _Iteration:
    return iteration if iteration.serial >= setting.serial else setting


def _row(serial: int) -> int:
    return _SETTINGS[serial % len(_SETTINGS)]
