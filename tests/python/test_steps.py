"""How ranks share what is left of an epoch."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from safetensors_spark.dataset._state import Epoch
from safetensors_spark.dataset._steps import Steps


@given(st.integers(0, 400), st.integers(1, 20), st.integers(1, 9), st.booleans())
def test_every_place_once_and_as_many_batches_on_each_rank(
    samples: int, batch_size: int, world_size: int, drop_last: bool
) -> None:
    steps = Steps(samples, batch_size, world_size, drop_last)
    batches = [[steps.places(step, rank) for rank in range(world_size)] for step in range(len(steps))]
    taken = [place for step in batches for batch in step for place in batch]
    whole = samples // (batch_size * world_size)
    if drop_last:
        assert taken == list(range(whole * batch_size * world_size))
        assert {len(batch) for step in batches for batch in step} <= {batch_size}
    elif 0 < samples < world_size:
        assert len(steps) == 1
        assert set(taken) == set(range(samples))
        assert len(taken) == world_size
    else:
        assert taken == list(range(samples))
        assert all(1 <= len(batch) <= batch_size + 1 for step in batches for batch in step)
        assert {len(batch) for step in batches[:-1] for batch in step} <= {batch_size}
        rest = samples % (batch_size * world_size)
        # A rest of a sample or more for each rank is a step of its own.
        assert len(steps) == whole + (rest >= world_size)


@given(st.integers(1, 400), st.integers(1, 20), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_each_node_has_a_part_of_the_places(samples: int, batch_size: int, nodes: int, ranks: int, drop: bool) -> None:
    samples = max(samples, nodes * ranks)
    epoch = Epoch(0, 0, samples, "", None, batch_size, nodes * ranks, drop, nodes)
    batches = [[epoch.places(step, rank) for step in range(len(epoch.steps))] for rank in range(nodes * ranks)]
    taken = sorted(place for rank in batches for batch in rank for place in batch)
    if drop:
        each = samples // nodes // (batch_size * ranks) * batch_size * ranks
        assert len(set(taken)) == len(taken) == each * nodes
    else:
        assert taken == list(range(samples))
    parts = [
        {place for rank in batches[node * ranks :][:ranks] for batch in rank for place in batch}
        for node in range(nodes)
    ]
    for node, places in enumerate(parts):
        part = epoch.part(node * ranks)
        assert places <= set(part)
        assert len(part) in (samples // nodes, samples // nodes + 1)
    # An epoch that is continued takes the rest of each part.
    begun = replace(epoch, begun_at=epoch.place(1))
    rest = [[begun.places(step, rank) for step in range(len(begun.steps))] for rank in range(nodes * ranks)]
    assert rest == [rank[1:] for rank in batches]


def test_a_rest_of_one_sample_for_each_rank() -> None:
    steps = Steps(samples=3 * 4 + 3, batch_size=4, world_size=3, drop_last=False)
    assert len(steps) == 2
    assert [steps.places(1, rank) for rank in range(3)] == [range(12, 13), range(13, 14), range(14, 15)]
    # One sample less joins the step before.
    joined = Steps(samples=3 * 4 + 2, batch_size=4, world_size=3, drop_last=False)
    assert [joined.places(0, rank) for rank in range(3)] == [range(0, 5), range(5, 10), range(10, 14)]
    assert len(joined) == 1


@given(st.integers(0, 400), st.integers(1, 20), st.integers(1, 9), st.booleans(), st.integers(0, 50))
def test_where_an_epoch_goes_on(samples: int, batch_size: int, world_size: int, drop_last: bool, batches: int) -> None:
    steps = Steps(samples, batch_size, world_size, drop_last)
    before = range(min(batches, len(steps)))
    gone = {place for step in before for rank in range(world_size) for place in steps.places(step, rank)}
    assert steps.taken(batches) == (samples if batches >= len(steps) else len(gone))
    assert gone == set(range(len(gone)))
