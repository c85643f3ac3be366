"""How far an epoch has come, for all copies of a dataset: the main process's, and those of a DataLoader's workers."""

from __future__ import annotations

import torch
from torch.utils.data import get_worker_info

# What the shared tensor has where.
_EPOCH, _LOADED, _LOADED_FOR, _BEGUN_AT, _BY_WORKERS = range(5)


class SharedPosition:
    """Which epoch it is, and where in it an iteration begins: at its first place, or where a loaded state says.

    A DataLoader copies the dataset to its workers, once for each iteration, or once for all of them. So what is said in
    the main process is kept in memory that all copies share.
    """

    def __init__(self) -> None:
        self._shared = torch.zeros(5, dtype=torch.int64).share_memory_()
        self._iterations = 0
        self._resumed_at: int | None = None

    @property
    def epoch(self) -> int:
        return int(self._shared[_EPOCH])

    @property
    def begun_at(self) -> int:
        """Where the last iteration began, or the next one will if there was none since a state was loaded."""
        return int(self._shared[_BEGUN_AT])

    @property
    def by_workers(self) -> bool:
        """Whether the last iteration was that of worker processes."""
        return get_worker_info() is None and bool(self._shared[_BY_WORKERS])

    def set(self, epoch: int, place: int) -> None:
        """The next iteration, and only that one, begins at this place."""
        self._shared.copy_(torch.tensor([epoch, place, 0, place, 0]))

    def resume(self, epoch: int, begun_at: int) -> None:
        """A worker goes on with an iteration that was begun at this place; all its workers say the same."""
        self._shared[_EPOCH], self._resumed_at = epoch, begun_at

    def begin(self) -> int:
        """Begins an iteration; says where."""
        worker = get_worker_info()
        self._iterations += 1
        # The same number in all workers of an iteration, and another one in the next: DataLoader draws a seed for each,
        # and workers that persist count.
        iteration = self._iterations + (0 if worker is None else (worker.seed - worker.id) % (1 << 62))
        if self._shared[_LOADED_FOR] == 0:
            self._shared[_LOADED_FOR] = iteration
        begun_at = int(self._shared[_LOADED]) if self._shared[_LOADED_FOR] == iteration else 0
        if self._resumed_at is not None:
            begun_at, self._resumed_at = self._resumed_at, None
        self._shared[_BEGUN_AT] = begun_at
        self._shared[_BY_WORKERS] = worker is not None
        return begun_at
