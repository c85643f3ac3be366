"""A dataset for PyTorch by batches."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, islice, pairwise
from typing import Any

import numpy as np
import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset import Dataset
from safetensors_spark.dataset._order import Order, Shuffle
from safetensors_spark.dataset._state import Epoch, from_state, to_state
from safetensors_spark.torch._columns import Batch, Columns
from safetensors_spark.torch._position import SharedPosition

# So many samples, of so many batches, are chosen at a time, which costs the least for each; but all of their shards
# must be there, and open, before the first of those batches.
_SAMPLES_AT_ONCE = 16384
_BATCHES_AT_ONCE = 16
_SHARDS_AT_ONCE = 128


class BatchDataset(IterableDataset[Batch]):
    """The samples of a dataset in batches, in their order or shuffled: this rank's share of them.

        batches = BatchDataset(open_dataset("points"), batch_size=64, shuffle=True)
        for epoch in range(batches.epoch, epochs):
            batches.set_epoch(epoch)
            for batch in batches:
                ...

    A batch is a dictionary of tensors, which are the caller's: copies of the files' bytes, with the files' dtypes and
    one more dimension in front. Threads make the next ones meanwhile, which is as fast as memory allows; where what is
    done with each batch in Python needs processes, take `DataLoader(batches, batch_size=None, num_workers=...)`, or
    torchdata's StatefulDataLoader.

    The order of an epoch is that of `seed` and the epoch's number, whatever the number of ranks and workers. Each step
    takes the next `batch_size` samples for every rank, so that all ranks have the same number of batches, and no sample
    is taken twice. Without `drop_last` the rest of an epoch is spread evenly over the ranks in smaller batches; where
    it is less than a sample for each, it joins the last step's batches, which then may have one sample more.

    State is a place in that order, so that it is saved and loaded at once, and fits any number of ranks and workers.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        window_bytes: int = 1 << 30,
        rank: int | None = None,
        world_size: int | None = None,
        threads: int = 2,
    ) -> None:
        """A rank's share of the samples.

        Args:
            batch_size: samples of a batch of each rank.
            shuffle: whether samples are taken in a random order: shards in a random order, and the samples of those
                that are read at the same time.
            seed: of that order; the same on all ranks.
            drop_last: whether the samples of an epoch that do not fill a batch on every rank are left out.
            window_bytes: so many bytes of shards are shuffled together, but no more than 128 shards. Those of a remote
                dataset must be on the disk before the first batch of their window.
            rank, world_size: by default those of `torch.distributed` if it is initialized, else those that `torchrun`
                has set in the environment, else one rank.
            threads: that make batches while the caller is busy; 0 for none. In worker processes there are none.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected 1 or more")
        if window_bytes < 1:
            raise ValueError(f"window_bytes is {window_bytes}, expected 1 or more")
        self._samples = dataset.samples
        self._columns = Columns(dataset.samples)
        self._rank, world_size = _world(rank, world_size)
        self._threads = threads
        self._plan = Epoch(
            epoch=0,
            begun_at=0,
            samples=len(dataset),
            dataset=_fingerprint(dataset),
            shuffle=Shuffle(seed, window_bytes) if shuffle else None,
            batch_size=batch_size,
            world_size=world_size,
            drop_last=drop_last,
        )
        self._position = SharedPosition()
        self._taken = 0
        # Batches that a worker had made of the iteration that it goes on with.
        self._resumed = 0

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is: each is shuffled another way. That of a loaded state goes on."""
        if epoch != self._position.epoch:
            self._position.set(epoch, 0)
            self._taken = 0

    def __len__(self) -> int:
        """The batches of a whole epoch."""
        return len(self._plan.steps)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        # Not in the generator, whose body begins to run when the first batch is asked for.
        begun_at = self._position.begin()
        epoch = replace(self._plan, epoch=self.epoch, begun_at=begun_at)
        self._taken, self._resumed = self._resumed, 0
        if worker is None:
            return self._batches(epoch, range(len(epoch.steps)), self._threads)
        first = worker.id + self._taken * worker.num_workers
        return self._batches(epoch, range(first, len(epoch.steps), worker.num_workers), 0)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """How far the epoch is.

        Args:
            batches: how many batches were taken in the last iteration, where a DataLoader's workers made them: they are
                ahead of what was taken, and only who took them knows. Not needed otherwise, nor with a
                StatefulDataLoader, which has a `state_dict` of its own.
        """
        if batches is None:
            if self._position.by_workers:
                raise SafetensorsSparkError(
                    "worker processes made these batches, and are ahead of what was taken of them: say how many were "
                    "taken, `state_dict(batches=...)`, or use torchdata's StatefulDataLoader and its `state_dict()`."
                )
            batches = self._taken
        return to_state(replace(self._plan, epoch=self.epoch, begun_at=self._position.begun_at), batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state in the next iteration: one of this class, or a StatefulDataLoader's that has such ones.

        The number of ranks, of workers, and the batch size may be others than when it was saved. A StatefulDataLoader
        loads its own state only with as many workers as before; for other numbers load it here, and begin a new loader.

        Raises `SafetensorsSparkError` for a state of another dataset, or of another order.
        """
        saved, batches = from_state(state)
        self._check(saved)
        if get_worker_info() is None:
            self._position.set(saved.epoch, saved.place(batches))
            self._taken = 0
            return
        # This worker's part of a StatefulDataLoader's state, of which each goes on with its own batches.
        if replace(saved, epoch=0, begun_at=0) != self._plan:
            raise SafetensorsSparkError(
                f"the StatefulDataLoader's state is of {saved.world_size} ranks and batches of {saved.batch_size}, not "
                f"of {self._plan.world_size} and {self._plan.batch_size}: load it with the BatchDataset's "
                "`load_state_dict`, and begin a new loader."
            )
        self._position.resume(saved.epoch, saved.begun_at)
        self._resumed = batches

    def _check(self, saved: Epoch) -> None:
        if (saved.dataset, saved.samples) != (self._plan.dataset, self._plan.samples):
            raise SafetensorsSparkError(
                f"the state is of another dataset of {saved.samples} samples than this one of {self._plan.samples}, or "
                "it has been written again since, and its order is another now: begin a new epoch."
            )
        if saved.shuffle != self._plan.shuffle:
            raise SafetensorsSparkError(
                f"the state is of the order of {saved.shuffle or 'the rows'}, and this dataset takes that of "
                f"{self._plan.shuffle or 'the rows'}: make it with the same `shuffle`, `seed` and `window_bytes`."
            )

    def _batches(self, epoch: Epoch, steps: range, threads: int) -> Iterator[Batch]:
        for batch in _ahead(self._tasks(epoch, steps), threads):
            self._taken += 1
            yield batch

    def _tasks(self, epoch: Epoch, steps: range) -> Iterator[Callable[[], Batch]]:
        order = Order(self._samples.shards, epoch.shuffle, epoch.epoch)
        of_shards = _SHARDS_AT_ONCE * epoch.samples // max(1, len(self._samples.shards))
        most = max(1, min(_BATCHES_AT_ONCE, min(_SAMPLES_AT_ONCE, of_shards) // epoch.batch_size))
        left, count = self._numbers(order, epoch, steps), 1
        while some := list(islice(left, count)):
            # The first batch does not wait for many.
            count = min(2 * count, most)
            self._columns.prefetch(order.shards(some[0][0]))
            chosen = self._columns.choose(np.concatenate([numbers for _, numbers in some]))
            ends = list(accumulate(len(numbers) for _, numbers in some))
            for begin, end in pairwise([0, *ends]):
                yield chosen.piece(begin, end)

    def _numbers(self, order: Order, epoch: Epoch, steps: range) -> Iterator[tuple[int, Array]]:
        """For each step its first place in the order, and the samples of this rank's batch."""
        left = iter(steps)
        while some := list(islice(left, max(1, _SAMPLES_AT_ONCE // epoch.batch_size))):
            places = [epoch.steps.places(step, self._rank) for step in some]
            numbers = order.take(epoch.begun_at + np.concatenate([np.arange(one.start, one.stop) for one in places]))
            ends = list(accumulate(len(one) for one in places))
            for one, (begin, end) in zip(places, pairwise([0, *ends]), strict=True):
                yield epoch.begun_at + one.start, numbers[begin:end]


def _ahead(tasks: Iterable[Callable[[], Batch]], threads: int) -> Iterator[Batch]:
    """What the tasks make, in their order: some are run in threads before they are asked for."""
    if threads == 0:
        yield from (task() for task in tasks)
        return
    with ThreadPoolExecutor(threads, "safetensors-spark-batches") as pool:
        running: deque[Future[Batch]] = deque()
        try:
            for task in tasks:
                running.append(pool.submit(task))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _world(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank is {rank} and world_size is {world_size}: give both or none")
    if rank is None or world_size is None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}, expected 0 to {world_size - 1}")
    return rank, world_size


def _fingerprint(dataset: Dataset) -> str:
    """Another one where the dataset has other shards, or more."""
    ends = accumulate(shard.samples or 0 for shard in dataset.shards)
    shards = [(shard.file, shard.bytes, end) for shard, end in zip(dataset.shards, ends, strict=True)]
    return hashlib.sha256(repr(shards).encode()).hexdigest()[:16]
