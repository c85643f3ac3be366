"""Batches for ranks, workers and epochs; and going on from a state, in any other world."""

import copy
import json
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from safetensors_spark import SafetensorsSparkError
from safetensors_spark.dataset import Dataset, open_dataset, open_store
from safetensors_spark.dataset._order import Order
from safetensors_spark.torch import BatchDataset, SampleDataset
from training.conftest import Folder

COUNTS = [7, 1, 12, 9, 5]
SAMPLES = sum(COUNTS)
# Windows of one to two shards.
WINDOW = 500
# Ranks and workers.
WORLDS = [(1, 0), (2, 0), (3, 2), (1, 2)]


@pytest.fixture(scope="module")
def points(numbered: Folder) -> Dataset:
    return open_dataset(numbered(COUNTS))


def dataset(points: Dataset, batch_size: int = 3, rank: int = 0, world_size: int = 1, **options: Any) -> BatchDataset:
    options = {"shuffle": True, "seed": 8, "window_bytes": WINDOW} | options
    return BatchDataset(points, batch_size, rank=rank, world_size=world_size, **options)


def expected(of: BatchDataset, epoch: int) -> list[int]:
    """The numbers of all samples in the order of the epoch (see `test_order.py`)."""
    numbers: list[int] = Order(of._samples.shards, of._plan.shuffle, epoch).take(np.arange(SAMPLES)).tolist()
    return numbers


def numbers(batches: Any) -> list[list[int]]:
    return [batch["n"].tolist() for batch in batches]


def in_steps(ranks: Sequence[Sequence[Sequence[int]]]) -> list[int]:
    """What the ranks took, step by step."""
    return [number for step in zip(*ranks, strict=True) for batch in step for number in batch]


def workers(of: BatchDataset, count: int) -> Any:
    return of if count == 0 else DataLoader(of, batch_size=None, num_workers=count)


def test_a_batch_has_the_files_samples(points: Dataset) -> None:
    batches = dataset(points, shuffle=False)
    found = list(batches)
    assert len(batches) == len(found) == 12
    assert in_steps([numbers(batches)]) == list(range(SAMPLES))
    for batch in found:
        assert (batch["n"].dtype, batch["x"].dtype, batch["x"].shape[1:]) == (torch.int64, torch.float32, (2, 3))
        assert torch.equal(batch["x"], batch["n"][:, None, None].expand(-1, 2, 3).float())
        batch["x"] += 1
    # What the caller does with a batch stays with the caller.
    assert all(torch.equal(again["x"] + 1, batch["x"]) for again, batch in zip(batches, found, strict=True))
    assert set(next(iter(dataset(open_dataset(points.samples.contents.location, columns=["x"]))))) == {"x"}


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 5, 50])
def test_the_order_is_one_for_all_worlds(points: Dataset, batch_size: int, drop_last: bool) -> None:
    for world_size in (1, 2, 3, 5):
        ranks = [dataset(points, batch_size, rank, world_size, drop_last=drop_last) for rank in range(world_size)]
        for epoch in (0, 3):
            for rank in ranks:
                rank.set_epoch(epoch)
            taken = [numbers(rank) for rank in ranks]
            assert {len(batches) for batches in taken} == {len(ranks[0])}
            order = expected(ranks[0], epoch)
            whole = SAMPLES // (batch_size * world_size) * batch_size * world_size
            assert in_steps(taken) == (order[:whole] if drop_last else order)
    assert expected(ranks[0], 0) != expected(ranks[0], 3)
    assert sorted(expected(ranks[0], 0)) == list(range(SAMPLES))


@pytest.mark.parametrize(("context", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_workers_take_the_same_batches(points: Dataset, context: str, persistent: bool) -> None:
    batches = dataset(points)
    loader = DataLoader(
        batches, batch_size=None, num_workers=2, persistent_workers=persistent, multiprocessing_context=context
    )
    for epoch in (0, 1):
        batches.set_epoch(epoch)
        found = list(loader)
        assert in_steps([numbers(found)]) == expected(batches, epoch)
        assert [len(batch["x"]) for batch in found] == [3] * 11 + [1]
    # A state is for one iteration.
    batches.load_state_dict(batches.state_dict(batches=5))
    assert in_steps([numbers(loader)]) == expected(batches, 1)[15:]
    # The next iteration is the next epoch, unless one is set.
    assert in_steps([numbers(loader)]) == expected(batches, 2)
    assert batches.epoch == 3
    assert in_steps([numbers(loader)]) == expected(batches, 3)
    for epoch in (3, 1, 1):
        batches.set_epoch(epoch)
        assert in_steps([numbers(loader)]) == expected(batches, epoch)
    # What the main process takes counts as well.
    assert in_steps([numbers(batches)]) == expected(batches, 2)
    assert in_steps([numbers(loader)]) == expected(batches, 3)


def test_threads_take_the_same_batches(points: Dataset) -> None:
    for threads in (0, 1, 5):
        batches = dataset(points, threads=threads)
        # An iteration that is left does not count.
        iterator = iter(batches)
        next(iterator)
        del iterator
        assert in_steps([numbers(batches)]) == expected(batches, 0)


def pairs_of_worlds() -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [(before, after) for before in WORLDS for after in WORLDS if 0 in (before[1], after[1])]


@pytest.mark.parametrize(("before", "after"), pairs_of_worlds())
def test_an_epoch_goes_on_at_every_step_in_another_world(
    points: Dataset, before: tuple[int, int], after: tuple[int, int]
) -> None:
    """The state is saved as JSON after every step, and loaded into another number of ranks and workers."""
    old = [dataset(points, 3, rank, before[0]) for rank in range(before[0])]
    order = expected(old[0], 1)
    for one in old:
        one.set_epoch(1)
    iterators = [iter(workers(one, before[1])) for one in old]
    taken: list[int] = []
    # Where workers take part, some of the steps do.
    steps = range(len(old[0]) + 1) if before[1] + after[1] == 0 else (1, 2, len(old[0]))
    for step in range(len(old[0]) + 1):
        if step in steps:
            count = step if before[1] else None
            (state,) = {json.dumps(one.state_dict(count)) for one in old}
            new = [dataset(points, 2, rank, after[0]) for rank in range(after[0])]
            for one in new:
                one.load_state_dict(json.loads(state))
                one.set_epoch(1)
            rest = in_steps([numbers(workers(one, after[1])) for one in new])
            if 0 < SAMPLES - len(taken) < after[0]:
                assert set(rest) == set(order[len(taken) :])
            else:
                assert taken + rest == order
        taken += in_steps([numbers([batch]) for iterator in iterators if (batch := next(iterator, None)) is not None])
    assert taken == order


@pytest.mark.parametrize("count", [0, 1, 2])
def test_stateful_dataloader(points: Dataset, count: int) -> None:
    """Its state at every step goes on in it with as many workers, and in the dataset itself with any."""

    def loader() -> tuple[StatefulDataLoader, BatchDataset]:
        batches = dataset(points)
        return StatefulDataLoader(batches, batch_size=None, num_workers=count), batches

    first, batches = loader()
    batches.set_epoch(4)
    order = expected(batches, 4)
    iterator = iter(first)
    taken: list[int] = []
    for step in range(len(batches) + 1):
        if step % 4 == 1 or step >= len(batches) - 1 or count == 0:
            state = pickle.loads(pickle.dumps(copy.deepcopy(first.state_dict())))
            second, again = loader()
            second.load_state_dict(state)
            if step < len(batches) or count > 0:
                assert taken + in_steps([numbers(second)]) == order
            # The next iteration is the next epoch, and that epoch again if it is set.
            assert in_steps([numbers(second)]) == expected(again, 5)
            again.set_epoch(5)
            assert in_steps([numbers(second)]) == expected(again, 5)
            pair = [dataset(points, 4, rank, 2) for rank in range(2)]
            for one in pair:
                one.load_state_dict(state)
                assert one.epoch == (4 if step < len(batches) else 5)
                one.set_epoch(4)
            rest = in_steps([numbers(one) for one in pair])
            assert set(rest) == set(order[len(taken) :])
            assert SAMPLES - len(taken) < 2 or taken + rest == order
        batch = next(iterator, None)
        taken += [] if batch is None else batch["n"].tolist()
    assert taken == order


@pytest.mark.parametrize("count", [1, 2])
def test_a_stateful_dataloader_at_the_end_of_an_epoch(points: Dataset, count: int) -> None:
    first = StatefulDataLoader(dataset(points), batch_size=None, num_workers=count)
    iterator = iter(first)
    for _ in range(len(first)):
        next(iterator)
    last = first.state_dict()
    assert next(iterator, None) is None
    for state, epochs in ((last, [None, 1, 2]), (first.state_dict(), [1, 2, 3])):
        again = dataset(points)
        second = StatefulDataLoader(again, batch_size=None, num_workers=count)
        second.load_state_dict(state)
        for epoch in epochs:
            assert in_steps([numbers(second)]) == ([] if epoch is None else expected(again, epoch))
            assert again.epoch == (1 if epoch is None else epoch + 1)


def test_a_stateful_dataloader_of_another_world(points: Dataset) -> None:
    old = StatefulDataLoader(dataset(points, rank=0, world_size=2), batch_size=None, num_workers=2)
    next(iter(old))
    new = StatefulDataLoader(dataset(points, rank=0, world_size=3), batch_size=None, num_workers=2)
    new.load_state_dict(old.state_dict())
    with pytest.raises(SafetensorsSparkError, match="is of 2 ranks and batches of 3, not of 3 and 3: load it with the"):
        list(new)
    seldom = StatefulDataLoader(dataset(points), batch_size=None, num_workers=1, snapshot_every_n_steps=5)
    iterator = iter(seldom)
    for _ in range(7):
        next(iterator)
    with pytest.raises(SafetensorsSparkError, match=r"between two snapshots .* `snapshot_every_n_steps=1`"):
        dataset(points).load_state_dict(seldom.state_dict())


def test_workers_are_ahead_of_what_was_taken(points: Dataset) -> None:
    batches = dataset(points)
    loader = iter(DataLoader(batches, batch_size=None, num_workers=1))
    taken = next(loader)["n"].tolist()
    with pytest.raises(SafetensorsSparkError, match=r"say how many were taken, `state_dict\(batches=...\)`"):
        batches.state_dict()
    for wrong, error, message in (
        (-3, ValueError, "batches is -3, expected 0 to 12"),
        (300, ValueError, "batches is 300, expected 0 to 12"),
        (1.5, TypeError, r"batches is 1\.5, expected a whole number"),
        ("1", TypeError, "batches is '1', expected a whole number"),
    ):
        with pytest.raises(error, match=message):
            batches.state_dict(batches=wrong)  # type: ignore[arg-type]
    state = batches.state_dict(batches=1)
    other = dataset(points)
    other.load_state_dict(state)
    assert taken + in_steps([numbers(other)]) == expected(other, 0)


def test_a_dataloader_that_stacks_batches_is_refused(points: Dataset) -> None:
    batches = dataset(points)
    for loader in (
        DataLoader(batches),
        DataLoader(batches, batch_size=4, collate_fn=lambda samples: samples[0]),
        DataLoader(batches, num_workers=1),
        StatefulDataLoader(batches),
    ):
        with pytest.raises(SafetensorsSparkError, match=r"use `DataLoader\(batches, batch_size=None\)`"):
            next(iter(loader))
    assert next(iter(DataLoader(batches, batch_size=None)))["x"].shape == (3, 2, 3)


def test_ranks_by_default(points: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_steps([numbers(BatchDataset(points, 4))]) == list(range(SAMPLES))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert numbers(BatchDataset(points, 4))[0] == [4, 5, 6, 7]
    for rank, world_size in ((2, 2), (-1, 1), (1, None), (None, 1)):
        with pytest.raises(ValueError, match="rank is"):
            BatchDataset(points, 4, rank=rank, world_size=world_size)
    with pytest.raises(ValueError, match="batch_size is 0, expected 1 or more"):
        BatchDataset(points, 0)
    with pytest.raises(ValueError, match="window_bytes is 0, expected 1 or more"):
        BatchDataset(points, 1, window_bytes=0)


def test_dtypes_by_name(points: Dataset) -> None:
    batch = next(iter(dataset(points, dtype="bfloat16")))
    assert (batch["x"].dtype, batch["n"].dtype) == (torch.bfloat16, torch.int64)
    batch = next(iter(dataset(points, dtype={"n": "int32"})))
    assert (batch["x"].dtype, batch["n"].dtype) == (torch.float32, torch.int32)
    for wrong in (np.float32, "bogus", "F16", "Tensor", 3):
        for dtype in (wrong, {"x": wrong}):
            with pytest.raises(TypeError, match=r"expected a dtype of PyTorch, such as torch\.float32, or its name"):
                dataset(points, dtype=dtype)


def test_arguments_of_another_kind(points: Dataset) -> None:
    for options, message in (
        ({"batch_size": "3"}, "batch_size is '3', expected a whole number"),
        ({"threads": "a"}, "threads is 'a', expected a whole number"),
        ({"transform": 3}, "transform is 3, expected a function"),
    ):
        with pytest.raises(TypeError, match=message):
            dataset(points, **options)


def test_what_is_no_dataset_of_samples(points: Dataset) -> None:
    location = points.samples.contents.location
    for wrong, kind in ((location, "str"), (open_store(location), "Store")):
        with pytest.raises(
            TypeError, match=rf"takes a dataset of samples, not {kind}: use `BatchDataset\(open_dataset"
        ):
            BatchDataset(wrong, 64)  # type: ignore[arg-type]
        with pytest.raises(
            TypeError, match=rf"takes a dataset of samples, not {kind}: use `SampleDataset\(open_dataset"
        ):
            SampleDataset(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="indexed by the number of a sample, not by slice: of several"):
        SampleDataset(points)[1:3]  # type: ignore[index]


def test_repr(points: Dataset) -> None:
    assert repr(dataset(points)) == (
        f"<BatchDataset of {points.samples.contents.location}: 12 batches of 3 samples, shuffled with seed 8, epoch 0>"
    )


def test_a_copy_goes_its_own_way(points: Dataset) -> None:
    batches = dataset(points)
    other = pickle.loads(pickle.dumps(batches))
    batches.set_epoch(1)
    assert (batches.epoch, other.epoch) == (1, 0)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(numbers, (batches, other))
    assert (in_steps([first]), in_steps([second])) == (expected(batches, 1), expected(batches, 0))
    # It has workers of its own, and they see its epochs.
    loader = workers(pickle.loads(pickle.dumps(dataset(points))), 1)
    assert [in_steps([numbers(loader)]) for _ in range(2)] == [expected(batches, 0), expected(batches, 1)]


def test_no_samples(numbered: Folder) -> None:
    empty = BatchDataset(open_dataset(numbered([0])), 4, shuffle=True)
    assert (len(empty), list(empty)) == (0, [])
