"""A dataset by batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise
from typing import Any, TypeVar

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._columns import Columns
from safetensors_spark.dataset._order import Places, Shuffle
from safetensors_spark.dataset._position import Position
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._state import EPOCHS, Epoch, from_state, to_state
from safetensors_spark.dataset._threads import run_ahead

# So many samples, of so many batches, are chosen at a time, which costs the least for each; but all of their shards
# must be there, and open, before the first of those batches.
_SAMPLES_AT_ONCE = 16384
_BATCHES_AT_ONCE = 16
_SHARDS_AT_ONCE = 128

T = TypeVar("T")


@dataclass(frozen=True)
class Finish:
    """Processes a batch in the thread that copied it."""

    cast: Callable[[Any], Any] | None = None
    transform: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform is {self.transform!r:.100}, expected a function that takes a batch")

    def __call__(self, batch: Any) -> Any:
        for step in (self.cast, self.transform):
            batch = batch if step is None else step(batch)
        return batch


@dataclass
class _Iteration:
    epoch: Epoch
    # Batches that the caller has.
    taken: int = 0

    @property
    def complete(self) -> bool:
        return self.taken >= len(self.epoch.steps)


class Batches:
    """The samples of a dataset in batches: one rank's share of each epoch. `Dataset.batches` makes it.

    Iterate over it once for each epoch. After a full pass the next iteration is the next epoch, in another order if
    samples are shuffled; an iteration that was left early does not count. `set_epoch` sets the next epoch. If several
    iterators run at the same time, each takes a whole epoch; the state is that of the last one started.

    Its state is a position in the order of an epoch: plain numbers, which fit any number of ranks and any batch size.
    """

    def __init__(
        self,
        columns: Columns[Any, Any],
        plan: Epoch,
        rank: int,
        threads: int,
        finish: Finish,
        position: Position | None = None,
    ) -> None:
        self._columns, self._samples = columns, columns.samples
        self._plan, self._rank = plan, rank
        self._threads = whole("threads", threads, 0)
        self._finish = finish
        self._position = position or Position()
        self._iteration = _Iteration(plan)
        # The epoch and the place of a state that was loaded since the last iteration began.
        self._loaded: tuple[int, int] | None = None

    @property
    def epoch(self) -> int:
        """The number of the current epoch; after a full pass, of the next one."""
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, which takes all of it.

        If a state of the same epoch was loaded since the last iteration began, it takes the rest after that state.
        """
        epoch = whole("epoch", epoch, 0, EPOCHS - 1)
        if not self._position.pending:
            # Worker processes may have begun it.
            self._loaded = None
        if epoch == self._position.at[0]:
            self._position.hold()
        elif self._loaded and epoch == self._loaded[0]:
            self._go_to(*self._loaded)
        else:
            self._go_to(epoch, 0)

    def __len__(self) -> int:
        """The number of batches in a whole epoch."""
        return len(self._plan.steps)

    def __repr__(self) -> str:
        order = "in order" if self._plan.shuffle is None else f"shuffled with seed {self._plan.shuffle.seed}"
        rank = f", rank {self._rank} of {self._plan.world_size}" if self._plan.world_size > 1 else ""
        batches = f"{len(self):,} {self._samples._batches(self._plan.batch_size)}, {order}{rank}"
        return f"<{type(self).__name__} of {self._samples.location}: {batches}, epoch {self.epoch}>"

    def __iter__(self) -> Iterator[Any]:
        # Not in the generator, which begins to run when the first batch is asked for.
        return self._iterate(self._begin())

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches that were taken, to save with a model. It is the same on every rank."""
        return self._state(self._iteration.taken)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state in the next iteration. The number of ranks and the batch size may have changed, and
        between epochs the number of nodes.

        If the state leaves no batch of its epoch, the next iteration is the next epoch.

        Raises `SafetensorsSparkError` for a state of another dataset or another order, and for what is not a state.
        """
        saved, batches = self._checked(state)
        self._loaded = saved.epoch, saved.place(batches)
        self._go_to(*self._loaded)
        if not self._iteration.epoch.steps:
            self._go_to(saved.epoch + 1, 0)

    def _go_to(self, epoch: int, place: int) -> None:
        self._position.set(epoch, place)
        # An iteration that is under way no longer counts.
        self._iteration = _Iteration(self._current)

    @property
    def _current(self) -> Epoch:
        epoch, begun_at = self._position.at
        return replace(self._plan, epoch=epoch, begun_at=begun_at)

    def _state(self, batches: int) -> dict[str, Any]:
        return to_state(self._current, batches)

    def _checked(self, state: Mapping[str, Any]) -> tuple[Epoch, int]:
        saved, batches = from_state(state)
        if (saved.dataset, saved.samples) != (self._plan.dataset, self._plan.samples):
            raise SafetensorsSparkError(
                f"the state is of another dataset of {saved.samples} samples than this one of {self._plan.samples}, or "
                "the dataset has been written again since, which changes its order: begin a new epoch."
            )
        if saved.shuffle != self._plan.shuffle:
            raise SafetensorsSparkError(
                f"the state is of the order of {saved.shuffle or 'the rows'}, and this dataset takes that of "
                f"{self._plan.shuffle or 'the rows'}: use the same `shuffle`, `seed` and `window_bytes`."
            )
        if saved.nodes != self._plan.nodes and saved.place(batches):
            raise SafetensorsSparkError(
                f"the state is of {saved.nodes} nodes, each of which has taken samples of its own part of the epoch: "
                f"continue it with `nodes={saved.nodes}`, or load a state that was saved between epochs."
            )
        return saved, batches

    def _begin(self) -> _Iteration:
        self._loaded = None
        self._position.begin(self._iteration.complete)
        self._iteration = _Iteration(self._current)
        return self._iteration

    def _iterate(self, iteration: _Iteration) -> Iterator[Any]:
        if self._position.pending:
            # An epoch was set, or a state loaded, since `iter()`.
            iteration = self._begin()
        for batch in self._run(iteration.epoch, range(len(iteration.epoch.steps)), self._threads):
            iteration.taken += 1
            yield batch
        if iteration is self._iteration:
            self._position.end()
            self._iteration = _Iteration(self._current)

    def _run(self, epoch: Epoch, steps: range, threads: int) -> Iterator[Any]:
        return run_ahead(self._tasks(epoch, steps), threads)

    def _tasks(self, epoch: Epoch, steps: range) -> Iterator[Callable[[], Any]]:
        order = self._samples._order(epoch.shuffle, epoch.epoch)
        of_shards = _SHARDS_AT_ONCE * epoch.samples // max(1, len(self._samples.shards))
        most = max(1, min(_BATCHES_AT_ONCE, min(_SAMPLES_AT_ONCE, of_shards) // epoch.batch_size))
        left, count = self._numbers(order, epoch, steps), 1
        while some := list(islice(left, count)):
            # The first batch does not wait for many.
            count = min(2 * count, most)
            place, part = some[0][0], epoch.part(self._rank)
            self._columns.prefetch(order.shards(place, part.stop if place in part else place + 1))
            chosen = order.choose(self._columns, np.concatenate([numbers for _, numbers in some]))
            ends = list(accumulate(len(numbers) for _, numbers in some))
            for begin, end in pairwise([0, *ends]):
                yield self._finished(chosen.piece(begin, end))

    def _finished(self, copy: Callable[[], dict[str, Any]]) -> Callable[[], Any]:
        return lambda: self._finish(copy())

    def _numbers(self, order: Places, epoch: Epoch, steps: range) -> Iterator[tuple[int, Array]]:
        """For each step its first place in the order, and the samples of this rank's batch."""
        last = epoch.shared_step
        left = (step for step in steps if step != last)
        while some := list(islice(left, max(1, _SAMPLES_AT_ONCE // epoch.batch_size))):
            places = [epoch.places(step, self._rank) for step in some]
            numbers = order.take(np.concatenate([np.arange(one.start, one.stop) for one in places]))
            ends = list(accumulate(len(one) for one in places))
            for one, (begin, end) in zip(places, pairwise([0, *ends]), strict=True):
                yield one.start, self._samples._batch(numbers[begin:end])[1]
        if last in steps:
            shared, rank, ranks = epoch.shared_places(self._rank)
            which, found = self._samples._batch(order.take(np.array(shared)), rank, ranks)
            yield shared[which], found


def plan(
    samples: Samples,
    batch_size: int,
    shuffle: bool,
    seed: int,
    drop_last: bool,
    window_bytes: int,
    rank: int,
    world_size: int,
    nodes: int,
) -> Epoch:
    """The settings common to all epochs. Raises `TypeError` if one is not a number, `ValueError` if out of range."""
    batch_size, window_bytes = whole("batch_size", batch_size, 1), whole("window_bytes", window_bytes, 1)
    world_size, nodes, seed = whole("world_size", world_size, 1), whole("nodes", nodes), whole("seed", seed)
    rank = whole("rank", rank, 0, world_size - 1)
    if nodes < 1 or world_size % nodes or nodes > max(1, samples.places):
        raise ValueError(
            f"nodes is {nodes}, expected a number that divides world_size, which is {world_size}, and is not greater "
            f"than the number of {'batches' if samples._exact else 'samples'}, which is {samples.places}"
        )
    count = len(samples) if samples._exact else samples.places
    if 0 < count // nodes < world_size // nodes and not drop_last:
        warnings.warn(
            f"{samples.location} has {count} samples for {world_size} ranks: so that each rank has a "
            "batch, some samples are taken by several ranks.",
            stacklevel=3,
        )
    return Epoch(
        epoch=0,
        begun_at=0,
        samples=samples.places,
        dataset=samples.fingerprint,
        shuffle=Shuffle(seed, window_bytes) if shuffle else None,
        batch_size=batch_size,
        world_size=world_size,
        drop_last=bool(drop_last),
        nodes=nodes,
        exact=samples._exact,
    )


def casts(dtype: Any, samples: Samples, parse: Callable[[Any], T]) -> Mapping[str, T] | T | None:
    """The dtypes to cast to. Raises for a column that is not read, and for what is not a dtype."""
    if not isinstance(dtype, Mapping):
        return None if dtype is None else parse(dtype)
    unknown = [name for name in dtype if name not in samples.columns]
    if unknown:
        raise SafetensorsSparkError(
            f"`dtype` names the column `{unknown[0]}`; {samples.location} is read with the columns "
            f"{', '.join(samples.columns)}."
        )
    return {name: parse(one) for name, one in dtype.items()}
