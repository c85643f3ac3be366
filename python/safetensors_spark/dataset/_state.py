"""The state of an epoch: what is saved beside a model, to continue from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark.dataset._order import Shuffle
from safetensors_spark.dataset._steps import Steps

# The mark by which a state is known within that of a StatefulDataLoader, and the version of what it holds.
_MARK = "safetensors_spark"
_VERSION = 1
# Epochs are numbered from 0 to before this.
EPOCHS = 1 << 32
_MOST = (1 << 64) - 1
_ADVICE = "Load a state as `state_dict` returned it."

T = TypeVar("T")


@dataclass(frozen=True)
class Epoch:
    """An epoch in a world, which was begun at some place of its order.

    Each node has a part of the order, whose samples its ranks share; one node has all of it. Parts that have one sample
    more than others put it into their last batch, so that all ranks have the same number of batches.

    Attributes:
        begun_at: how many places of each part were taken before.
        samples: how many samples the dataset has.
        dataset: what tells this dataset's samples from others.
        shuffle: how they are shuffled; None if they are not.
        exact: whether a place is a batch of many samples. In the last step ranks share the samples of those that are
            left, so that parts may have one place more than others.
    """

    epoch: int
    begun_at: int
    samples: int
    dataset: str
    shuffle: Shuffle | None
    batch_size: int
    world_size: int
    drop_last: bool
    nodes: int = 1
    exact: bool = False

    @property
    def steps(self) -> Steps:
        """The steps that were left when it was begun, of the ranks of each node."""
        left = most_places(self.samples, self.nodes, self.exact and not self.drop_last) - self.begun_at
        return Steps(left, self.batch_size, self.world_size // self.nodes, self.drop_last, self.exact)

    def places(self, step: int, rank: int) -> range:
        """The places of the order that the rank takes in the step."""
        ranks = self.world_size // self.nodes
        part, found = self.part(rank), self.steps.places(step, rank % ranks)
        first = part.start + self.begun_at
        is_last = found.stop == self.steps.samples and not self.drop_last
        return range(first + found.start, part.stop if is_last else first + found.stop)

    @property
    def shared_step(self) -> int | None:
        """The step in which ranks share places: the last one, if a place is a batch."""
        return len(self.steps) - 1 if self.exact and not self.drop_last else None

    def shared_places(self, rank: int) -> tuple[range, int, int]:
        """The places that the rank shares in that step; and which one it is of how many ranks that share them."""
        ranks = self.world_size // self.nodes
        taken = self.begun_at + (len(self.steps) - 1) * ranks
        each, more = divmod(self.samples, self.nodes)
        if taken < each:
            part = self.part(rank)
            return range(part.start + taken, part.stop), rank % ranks, ranks
        # The first nodes have one more, which they share with the others.
        return range(each, (each + 1) * more, each + 1), rank, self.world_size

    def part(self, rank: int) -> range:
        """The places of the rank's node."""
        node = rank * self.nodes // self.world_size
        each, more = divmod(self.samples, self.nodes)
        first = node * each + min(node, more)
        return range(first, first + each + (node < more))

    def place(self, batches: int) -> int:
        """How many places of each part are taken after so many steps."""
        return self.begun_at + self.steps.taken(batches)


def most_places(samples: int, nodes: int, exact: bool) -> int:
    """How many places of a part are counted: all that each part has, or of batches all that any part has."""
    return -(-samples // nodes) if exact else samples // nodes


def to_state(epoch: Epoch, batches: int) -> dict[str, Any]:
    """As plain values, with the number of batches that were taken."""
    # Versions that do not know `exact` read other states.
    values = {name: value for name, value in asdict(epoch).items() if name != "exact" or value}
    return {_MARK: _VERSION, **values, "batches": batches}


def from_state(state: Mapping[str, Any]) -> tuple[Epoch, int]:
    """The epoch, and how many of its steps were taken: of a state of batches, or of a StatefulDataLoader's.

    The latter has a state for each of its workers, who take turns.

    Raises `SafetensorsSparkError` for what is not such a state.
    """
    found = list(_marked(state))
    if not found:
        raise SafetensorsSparkError("this is not a state of batches, nor of a StatefulDataLoader that loads them.")
    if state.get("_steps_since_snapshot"):
        raise SafetensorsSparkError(
            "the state was saved between two snapshots of its StatefulDataLoader, and does not say how far each worker "
            "was: save states with `snapshot_every_n_steps=1`."
        )
    for one in found:
        _refuse_others(one, {_MARK, "batches", *(field.name for field in fields(Epoch))})
    epochs = {_epoch(one) for one in found}
    if len(epochs) > 1:
        raise SafetensorsSparkError(
            "the state has several states of batches, such as those of training and validation: load each by itself."
        )
    epoch, batches = epochs.pop(), sum(_number(one, "batches") for one in found)
    if batches > len(epoch.steps):
        raise _malformed("batches", batches, f"at most {len(epoch.steps)}, as many as there are")
    return epoch, batches


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
    samples, world_size = _number(state, "samples"), _number(state, "world_size", least=1)
    nodes = _number(state, "nodes", least=1, most=world_size)
    exact = "exact" in state and _value(state, "exact", bool, "True or False")
    return Epoch(
        epoch=_number(state, "epoch", most=EPOCHS - 1),
        begun_at=_number(state, "begun_at", most=most_places(samples, nodes, exact)),
        samples=samples,
        dataset=_value(state, "dataset", str, "a string"),
        shuffle=_shuffle(state),
        batch_size=_number(state, "batch_size", least=1),
        world_size=world_size,
        drop_last=_value(state, "drop_last", bool, "True or False"),
        nodes=nodes,
        exact=exact,
    )


def _shuffle(state: Mapping[str, Any]) -> Shuffle | None:
    if "shuffle" in state and state["shuffle"] is None:
        return None
    shuffle = _value(state, "shuffle", dict, "None, or a dictionary of `seed` and `window_bytes`")
    _refuse_others(shuffle, {"seed", "window_bytes"})
    return Shuffle(_value(shuffle, "seed", int, "a whole number"), _number(shuffle, "window_bytes", least=1))


def _number(state: Mapping[str, Any], name: str, least: int = 0, most: int = _MOST) -> int:
    expected = f"a whole number from {least} to {most}"
    value = _value(state, name, int, expected)
    if isinstance(value, bool) or not least <= value <= most:
        raise _malformed(name, value, expected)
    return value


def _value(state: Mapping[str, Any], name: str, kind: type[T], expected: str) -> T:
    if name not in state:
        raise SafetensorsSparkError(f"the state is malformed: `{name}` is missing. {_ADVICE}")
    value = state[name]
    if not isinstance(value, kind):
        raise _malformed(name, value, expected)
    return value


def _refuse_others(state: Mapping[str, Any], names: set[str]) -> None:
    others = [name for name in state if name not in names]
    if others:
        raise SafetensorsSparkError(f"the state is malformed: no state has `{others[0]!s:.50}`. {_ADVICE}")


def _malformed(name: str, value: object, expected: str) -> SafetensorsSparkError:
    return SafetensorsSparkError(f"the state is malformed: `{name}` is {value!r:.50}, expected {expected}. {_ADVICE}")
