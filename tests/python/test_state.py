"""States that are not what `state_dict` returned: an error that names the value."""

import json
from dataclasses import replace
from typing import Any

import pytest

from safetensors_spark import SafetensorsSparkError
from safetensors_spark.dataset._order import Shuffle
from safetensors_spark.dataset._state import Epoch, from_state, to_state

EPOCH = Epoch(
    epoch=2,
    begun_at=5,
    samples=34,
    dataset="abc",
    shuffle=Shuffle(seed=1, window_bytes=100),
    batch_size=4,
    world_size=2,
    drop_last=False,
)
STATE = to_state(EPOCH, 3)


def changed(**values: Any) -> dict[str, Any]:
    return STATE | values


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in STATE.items() if key != name}


def test_a_state_is_read_as_it_was_saved() -> None:
    assert from_state(json.loads(json.dumps(STATE))) == (EPOCH, 3)
    unshuffled = changed(shuffle=None)
    assert from_state(unshuffled)[0].shuffle is None


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (changed(epoch=-1), "`epoch` is -1, expected a whole number from 0"),
        (changed(epoch=1 << 32), "`epoch` is 4294967296"),
        (changed(begun_at=-5), "`begun_at` is -5"),
        (changed(begun_at=35), "`begun_at` is 35, expected a whole number from 0 to 34"),
        (changed(samples=1 << 64), f"`samples` is {1 << 64}, expected a whole number from 0 to {(1 << 64) - 1}"),
        (changed(samples=-34), "`samples` is -34"),
        (changed(batch_size=0), "`batch_size` is 0, expected a whole number from 1"),
        (changed(batch_size=-4), "`batch_size` is -4"),
        (changed(world_size=0), "`world_size` is 0"),
        (changed(world_size=-2), "`world_size` is -2"),
        (changed(batches=-1), "`batches` is -1"),
        (changed(batches=1.5), "`batches` is 1.5"),
        (changed(batches="3"), "`batches` is '3'"),
        (changed(batches=None), "`batches` is None"),
        (changed(batches=6), "`batches` is 6, expected at most 4, as many as there are"),
        (changed(epochs=2), "no state has `epochs`"),
        (changed(shuffle={"seed": 1, "window_bytes": 1, "buffer": 2}), "no state has `buffer`"),
        (changed(dataset=7), "`dataset` is 7, expected a string"),
        (changed(drop_last="no"), "`drop_last` is 'no', expected True or False"),
        (changed(shuffle=True), "`shuffle` is True, expected"),
        (changed(shuffle={"seed": 1}), "`window_bytes` is missing"),
        (changed(shuffle={"seed": 1, "window_bytes": 0}), "`window_bytes` is 0"),
        (changed(shuffle={"seed": "x", "window_bytes": 1}), "`seed` is 'x'"),
        (without("batches"), "`batches` is missing"),
        (without("shuffle"), "`shuffle` is missing"),
        (without("samples"), "`samples` is missing"),
        (changed(dataset="x" * 1000, epoch="y" * 1000), "`epoch` is 'yyyy"),
    ],
)
def test_a_malformed_state_names_the_value(state: dict[str, Any], message: str) -> None:
    with pytest.raises(SafetensorsSparkError) as raised:
        from_state(state)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 300
    # In the state of a StatefulDataLoader, too.
    with pytest.raises(SafetensorsSparkError):
        from_state({"_snapshot": {"_worker_snapshots": {"worker_0": {"dataset_state": state}}}})


@pytest.mark.parametrize("state", [{}, {"epoch": 3}, None, [STATE], "state"])
def test_what_is_no_state(state: Any) -> None:
    with pytest.raises(SafetensorsSparkError, match="not a state of batches"):
        from_state(state)


def test_a_state_of_another_version() -> None:
    with pytest.raises(SafetensorsSparkError, match="of version 2, and this safetensors-spark reads version 1"):
        from_state(changed(safetensors_spark=2))


def test_several_states() -> None:
    with pytest.raises(SafetensorsSparkError, match="has several states of batches"):
        from_state({"train": STATE, "test": changed(epoch=3)})


@pytest.mark.parametrize(("samples", "nodes"), [(24, 1), (25, 1), (24, 2), (27, 2), (24, 3), (26, 3)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_go_on_in_the_part_of_their_node(samples: int, nodes: int, drop_last: bool) -> None:
    whole = Epoch(0, 0, samples, "abc", None, 2, 2 * nodes, drop_last, nodes)
    for steps in range(len(whole.steps)):
        rest = replace(whole, begun_at=whole.place(steps))
        for node in range(nodes):
            before = _places(whole, node, steps)
            assert before.isdisjoint(_places(rest, node))
            assert before | _places(rest, node) == _places(whole, node)
            assert drop_last or _places(whole, node) == set(whole.part(2 * node))


def _places(epoch: Epoch, node: int, steps: int | None = None) -> set[int]:
    """Those that the two ranks of a node take in so many steps, or in all."""
    taken = range(len(epoch.steps) if steps is None else steps)
    return {place for step in taken for rank in (2 * node, 2 * node + 1) for place in epoch.places(step, rank)}
