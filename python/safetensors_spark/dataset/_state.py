"""The state of an epoch: what is saved beside a model, to go on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark.dataset._order import Shuffle
from safetensors_spark.dataset._steps import Steps

# The mark by which a state is known within that of a StatefulDataLoader, and the version of what it holds.
_MARK = "safetensors_spark"
_VERSION = 1


@dataclass(frozen=True)
class Epoch:
    """An epoch in a world, which was begun at some place of its order.

    Attributes:
        samples: how many samples the dataset has.
        dataset: what tells this dataset's samples from others.
        shuffle: how they are shuffled; None if they are not.
    """

    epoch: int
    begun_at: int
    samples: int
    dataset: str
    shuffle: Shuffle | None
    batch_size: int
    world_size: int
    drop_last: bool

    @property
    def steps(self) -> Steps:
        """The steps that were left when it was begun."""
        return Steps(self.samples - self.begun_at, self.batch_size, self.world_size, self.drop_last)

    def place(self, batches: int) -> int:
        """The first place that is left after so many steps."""
        return self.begun_at + self.steps.taken(batches)


def to_state(epoch: Epoch, batches: int) -> dict[str, Any]:
    """As plain values, with the number of batches that were taken."""
    return {_MARK: _VERSION, **asdict(epoch), "batches": batches}


def from_state(state: Mapping[str, Any]) -> tuple[Epoch, int]:
    """The epoch, and how many steps of it were taken: of a dataset's state, or of a StatefulDataLoader's.

    The latter's has a state for each of its workers, who take turns.
    """
    found = list(_marked(state))
    if not found:
        raise SafetensorsSparkError("this is no state of a BatchDataset, nor of a StatefulDataLoader that has one.")
    if state.get("_steps_since_snapshot"):
        raise SafetensorsSparkError(
            "the state was saved between two snapshots of its StatefulDataLoader, and does not say how far each worker "
            "was: save states with `snapshot_every_n_steps=1`."
        )
    epochs = {_epoch(one) for one in found}
    if len(epochs) > 1:
        raise SafetensorsSparkError("the state has several BatchDatasets: load the state of each into that one.")
    return epochs.pop(), sum(one["batches"] for one in found)


def _marked(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if _MARK in value:
            yield value
        else:
            for inner in value.values():
                yield from _marked(inner)


def _epoch(state: Mapping[str, Any]) -> Epoch:
    if state[_MARK] != _VERSION:
        raise SafetensorsSparkError(
            f"the state is of version {state[_MARK]}, and this safetensors-spark reads version {_VERSION}."
        )
    values = {name: value for name, value in state.items() if name not in (_MARK, "batches")}
    shuffle = values.pop("shuffle")
    return Epoch(shuffle=None if shuffle is None else Shuffle(**shuffle), **values)
