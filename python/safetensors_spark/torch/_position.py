"""Which epoch it is, for all copies of a dataset: the main process's, and those of a DataLoader's workers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.utils.data import get_worker_info

from safetensors_spark.dataset._position import Position

# Who began the last iteration. Other numbers are iterations of workers.
_NOBODY, _MAIN, _WORKERS = range(3)
_MOST = 1 << 29


class _Word(NamedTuple):
    """What workers read and replace as a whole, so that all workers of an iteration find the same."""

    epoch: int
    iteration: int = _NOBODY
    # Whether the iteration begins where a state says, and not at the first place.
    loaded: bool = True
    held: bool = False


class SharedPosition(Position):
    """A position that all copies of a dataset share.

    A DataLoader copies the dataset to its workers, once for each iteration, or once for all of them. Workers are ahead
    of what is taken, and cannot know whether all of it is. So each iteration of workers counts as a full pass.
    """

    def __init__(self) -> None:
        # A word, and the place that was set.
        self._shared = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._iterations = 0
        self._resumed: tuple[int, int] | None = None
        super().__init__()

    @property
    def epoch(self) -> int:
        return self._read().epoch

    @property
    def begun_at(self) -> int:
        return int(self._shared[1]) if self._read().loaded else 0

    @property
    def pending(self) -> bool:
        return self._read().iteration == _NOBODY

    @property
    def by_workers(self) -> bool:
        """Whether the last iteration was that of worker processes."""
        return get_worker_info() is None and self._read().iteration >= _WORKERS

    def set(self, epoch: int, place: int) -> None:
        self._shared[1] = place
        self._write(_Word(epoch))

    def hold(self) -> None:
        if not self.pending:
            self._write(self._read()._replace(held=True))

    def begin(self, complete: bool) -> None:
        found = self._read()
        worker = get_worker_info()
        if worker is None:
            mine, complete = _MAIN, complete or found.iteration >= _WORKERS
        else:
            mine, complete = self._iteration(worker.seed - worker.id), found.iteration >= _WORKERS
        if self._resumed is not None:
            epoch, self._shared[1] = self._resumed
            self._resumed = None
            self._write(_Word(epoch, mine))
        elif found.iteration == _NOBODY:
            self._write(found._replace(iteration=mine))
        elif found.iteration != mine or worker is None:
            self._write(_Word(found.epoch + (complete and not found.held), mine, loaded=False))

    def end(self) -> None:
        found = self._read()
        self.set(found.epoch + (not found.held), 0)

    def resume(self, epoch: int, begun_at: int) -> None:
        """A worker goes on with an iteration that was begun at this place; all its workers say the same."""
        self._resumed = epoch, begun_at

    def _iteration(self, seed: int) -> int:
        """The same number in all workers of an iteration, and another one in the next: DataLoader draws a seed for
        each, and workers that persist count.
        """
        self._iterations += 1
        return _WORKERS + (seed + self._iterations) % (_MOST - _WORKERS)

    def _read(self) -> _Word:
        word = int(self._shared[0])
        return _Word(word & 0xFFFFFFFF, word >> 34, bool(word >> 32 & 1), bool(word >> 33 & 1))

    def _write(self, word: _Word) -> None:
        self._shared[0] = word.iteration << 34 | word.held << 33 | word.loaded << 32 | word.epoch

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # A copy that was not sent to a worker has workers of its own.
        self._shared = self._shared.share_memory_()
