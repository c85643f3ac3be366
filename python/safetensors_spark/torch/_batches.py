"""A dataset for PyTorch by batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark.dataset import Batches, Blocks, Dataset, Mix, Packs
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._batches import Finish, casts, plan
from safetensors_spark.dataset._forms import Form, checked_forms
from safetensors_spark.dataset._max_tokens import by_tokens
from safetensors_spark.dataset._state import Epoch
from safetensors_spark.dataset._threads import run_ahead
from safetensors_spark.torch._device import Transfer, transfer
from safetensors_spark.torch._position import SharedPosition
from safetensors_spark.torch._tensors import Batch, finish_tensors, samples_of, tensor_columns, tensor_dtype


class BatchDataset(Batches, IterableDataset[Any]):
    """The samples of a dataset in batches, in their order or shuffled: this rank's share of them.

        batches = BatchDataset(open_dataset("points"), batch_size=64, shuffle=True)
        for epoch in range(batches.epoch, epochs):
            for batch in batches:
                ...

    A batch is a dictionary of tensors: copies of the files' bytes, which the caller may change, with the files' dtypes
    and one more dimension in front; text and binary columns are lists of strings or bytes. Dates are days, and
    timestamps microseconds, since 1970. Threads prepare the next batches meanwhile, as fast as memory allows. If a
    transform needs processes, use `DataLoader(batches, batch_size=None, num_workers=...)`, or torchdata's
    StatefulDataLoader.

    The order of an epoch depends on `seed` and the epoch's number, and not on the number of ranks and workers. Each
    step takes the next `batch_size` samples for every rank, so all ranks have the same number of batches, and no
    sample is taken twice. Without `drop_last` the rest of an epoch is spread evenly over the ranks in smaller batches;
    if it is less than a sample for each, it joins the last step's batches, which then may have one more sample. Only
    if a whole epoch, or the rest of it after a loaded state, has fewer samples than ranks, some samples are
    taken by several ranks, as with PyTorch's DistributedSampler.

    After a full pass the next iteration is the next epoch; `set_epoch` says which one is next. Worker processes cannot
    know how many of their batches are taken, so each iteration of a DataLoader with workers counts as a full pass, and
    `epoch` is the next one when they have made all batches, a few batches before the last one is taken. Set an epoch,
    or load a state, before the DataLoader's iteration begins, not while its workers start.

    A state is a position in that order, so it is fast to save and load, and fits any number of ranks and workers.
    """

    _position: SharedPosition

    def __init__(
        self,
        dataset: Dataset | Mix | Blocks | Packs,
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
        tokens: str | None = None,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        nodes: int = 1,
        window_bytes: int = 1 << 30,
        threads: int = 2,
        dtype: Mapping[str, torch.dtype | str] | torch.dtype | str | None = None,
        ragged: Mapping[str, Form] | Form = "nested",
        transform: Callable[[Batch], Any] | None = None,
        pin_memory: bool = False,
        device: torch.device | str | int | None = None,
    ) -> None:
        """A rank's share of the samples.

        Args:
            dataset: the result of `open_dataset`, `mix`, `Dataset.blocks` or `Dataset.pack`.
            batch_size: the number of samples in a batch of each rank; not with `max_tokens`.
            max_tokens: instead, the maximum number of values of a ragged column in a batch of each rank. Batches have
                the same samples in all epochs, which take them in another order. To
                compute them, the offsets of all shards are read now. If the last batches are fewer than ranks, the
                ranks share their samples: each takes a part of one batch.
            tokens: the column that `max_tokens` counts, if several are ragged.
            shuffle: take samples in a random order: shards in a random order, and the samples of those shards that are
                read together in a random order.
            seed: decides the order, together with the epoch. It must be the same on all ranks.
            drop_last: drop the samples at the end of an epoch that do not fill a batch on every rank.
            rank: the rank of this process; by default that of `torch.distributed` if it is initialized, else the one
                that `torchrun` has set in the environment, else 0.
            world_size: the number of ranks; by default from the same source, else 1.
            nodes: if more than one, each node takes only samples of its own part of an epoch, and downloads only the
                shards of that part of a remote dataset. Node 0 has the first `world_size / nodes` ranks.
            window_bytes: shuffle the samples of so many bytes of shards together, but of at most 128 shards. Shards
                of a remote dataset must be on the disk before the first batch of their window.
            threads: the number of threads that prepare batches while the caller is busy; 0 for none. Worker processes
                use none.
            dtype: cast columns of floating-point numbers to this dtype of PyTorch, or the one of this name; or a
                dictionary with a dtype for each column to cast.
            ragged: the form of columns whose samples differ in length: `nested` for a nested tensor of layout
                `torch.jagged`; `packed` for `Packed`, as FlashAttention takes sequences; `padded` for `Padded`; or a
                dictionary with a form for some columns, and `nested` for others.
            transform: called with each batch, in those threads or worker processes; its result replaces the
                batch. When a program ends, for example by Ctrl-C, it waits for the calls that are running in threads.
            pin_memory: copy batches to pinned memory in the threads, for non-blocking copies to a CUDA device.
            device: copy batches to this device in the threads. Copies to a CUDA device use pinned memory and
                a separate stream, and overlap with the caller's computation. Not for worker processes.

        Raises `TypeError` for an argument of another kind, `ValueError` for a number that is out of range, and
        `SafetensorsSparkError` for a column that does not exist, or a sample of more than `max_tokens`. Warns if
        there are fewer samples than ranks.
        """
        rank, world_size = _world(rank, world_size)
        samples, size = by_tokens(
            samples_of(dataset, "BatchDataset"), batch_size, max_tokens, tokens, shuffle, seed, window_bytes
        )
        dtypes = casts(dtype, samples, tensor_dtype)
        super().__init__(
            tensor_columns(samples),
            plan(samples, size, shuffle, seed, drop_last, window_bytes, rank, world_size, nodes),
            rank,
            threads,
            Finish(partial(finish_tensors, checked_forms(ragged, samples), dtypes), transform),
            SharedPosition(),
        )
        self._device = None if device is None else torch.device(device)
        self._pin_memory = pin_memory
        # Batches that a worker had made of the iteration that it continues with.
        self._resumed = 0

    def __iter__(self) -> Iterator[Any]:
        _refuse_collation(sys._getframe(1).f_locals.get("self"))
        worker = get_worker_info()
        if worker is None:
            return super().__iter__()
        if self._device is not None or self._pin_memory:
            raise SafetensorsSparkError(
                "`device` and `pin_memory` are for threads, and this is a worker process: use "
                "`DataLoader(..., pin_memory=True)`, and copy batches to the device in the main process."
            )
        iteration = self._begin()
        iteration.taken, self._resumed = self._resumed, 0
        first = worker.id + iteration.taken * worker.num_workers
        steps = range(first, len(iteration.epoch.steps), worker.num_workers)
        makes_last = worker.id == (len(iteration.epoch.steps) - 1) % worker.num_workers
        return self._of_worker(iteration, steps, makes_last)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The position after the batches that were taken, to save with a model. It is the same on every rank.

        Args:
            batches: the number of batches taken in the last iteration, if a DataLoader's workers made them: workers are
                ahead, and only the training loop knows it. Not needed otherwise, nor with a
                StatefulDataLoader, which has its own `state_dict`.
        """
        if batches is None:
            if self._position.by_workers:
                raise SafetensorsSparkError(
                    "worker processes made these batches, and are ahead of what was taken of them: say how many were "
                    "taken, `state_dict(batches=...)`, or use torchdata's StatefulDataLoader and its `state_dict()`."
                )
            batches = self._iteration.taken
        return self._state(whole("batches", batches, 0, len(self._current.steps)))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state in the next iteration: one of this class, or a StatefulDataLoader's that has such ones.

        The numbers of ranks and workers and the batch size may differ from those when it was saved. A
        StatefulDataLoader loads its own state only with the same number of workers; for other numbers load it here, and
        create a new loader.

        Raises `SafetensorsSparkError` for a state of another dataset or another order, and for what is not a state.
        """
        if get_worker_info() is None:
            super().load_state_dict(state)
            return
        # This worker's part of a StatefulDataLoader's state, of which each continues with its own batches.
        saved, batches = self._checked(state)
        if replace(saved, epoch=0, begun_at=0) != self._plan:
            raise SafetensorsSparkError(
                f"the StatefulDataLoader's state is of {saved.world_size} ranks and batches of {saved.batch_size}, not "
                f"of {self._plan.world_size} and {self._plan.batch_size}: load it with the BatchDataset's "
                "`load_state_dict`, and begin a new loader."
            )
        self._position.resume(saved.epoch, saved.begun_at)
        self._resumed = batches

    def _run(self, epoch: Epoch, steps: range, threads: int) -> Iterator[Any]:
        moves = transfer(self._device, self._pin_memory)
        if moves is None:
            return super()._run(epoch, steps, threads)
        sending = (partial(_sent, moves, task) for task in self._tasks(epoch, steps))
        return map(moves.receive, run_ahead(sending, threads))

    def _of_worker(self, iteration: Any, steps: range, makes_last: bool) -> Iterator[Any]:
        for batch in self._run(iteration.epoch, steps, 0):
            iteration.taken += 1
            yield batch
        if makes_last:
            self._position.ended()


def _sent(moves: Transfer, task: Callable[[], Any]) -> Any:
    return moves.send(task())


def _refuse_collation(caller: object) -> None:
    """Raises if a DataLoader would stack batches, which adds a dimension."""
    if getattr(caller, "auto_collation", False):
        raise SafetensorsSparkError(
            "a BatchDataset has batches already, which this DataLoader would stack again: use "
            "`DataLoader(batches, batch_size=None)`."
        )


def _world(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank is {rank} and world_size is {world_size}: give both or none")
    if rank is not None and world_size is not None:
        return rank, world_size
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
