"""Batches of NumPy's arrays: epochs, ranks, states, casts and transforms."""

import json
import pickle
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Batches, Dataset, open_dataset

COUNTS = [7, 1, 12, 9, 5]
SAMPLES = sum(COUNTS)
# Windows of one to two shards.
WINDOW = 500


def shards(folder: Path, counts: Sequence[int], width: int = 3) -> Dataset:
    """Shards of so many samples: `n` is a sample's number, and `x` is a vector of it."""
    folder.mkdir()
    begin = 0
    for shard, count in enumerate(counts):
        n = np.arange(begin, begin + count)
        save_file({"n": n, "x": np.repeat(n[:, None], width, 1).astype(np.float32)}, folder / f"{shard}.safetensors")
        begin += count
    return open_dataset(folder)


@pytest.fixture
def points(tmp_path: Path) -> Dataset:
    return shards(tmp_path / "points", COUNTS)


def shuffled(points: Dataset, batch_size: int = 3, **options: Any) -> Batches:
    return points.batches(batch_size, shuffle=True, seed=8, window_bytes=WINDOW, **options)


def numbers(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["n"].tolist()]


def order(points: Dataset, epoch: int) -> list[int]:
    """All samples in the order of the epoch."""
    batches = shuffled(points, SAMPLES)
    batches.set_epoch(epoch)
    return numbers(batches)


def test_a_batch_has_the_files_samples(points: Dataset) -> None:
    batches = points.batches(10)
    assert len(batches) == 4
    found = list(batches)
    assert [len(batch["n"]) for batch in found] == [10, 10, 10, 4]
    assert numbers(found) == list(range(SAMPLES))
    for batch in found:
        assert (batch["x"].dtype, batch["x"].shape[1:]) == (np.float32, (3,))
        assert np.array_equal(batch["x"], np.repeat(batch["n"][:, None], 3, 1))
        # They are the caller's.
        batch["x"] += 1
    assert all(np.array_equal(again["x"] + 1, batch["x"]) for again, batch in zip(batches, found, strict=True))
    assert numbers(points.batches(10, drop_last=True)) == list(range(30))


@pytest.mark.parametrize("threads", [0, 2])
def test_a_full_pass_begins_the_next_epoch(points: Dataset, threads: int) -> None:
    batches = shuffled(points, threads=threads)
    first, second, third = (order(points, epoch) for epoch in range(3))
    assert len({tuple(one) for one in (first, second, third)}) == 3
    assert sorted(first) == list(range(SAMPLES))
    assert numbers(batches) == first
    assert batches.epoch == 1
    # What is left early does not count.
    next(iter(batches))
    assert batches.epoch == 1
    assert numbers(batches) == second
    assert numbers(batches) == third
    # `set_epoch` decides.
    for epoch in (1, 1, 0):
        batches.set_epoch(epoch)
        assert numbers(batches) == order(points, epoch)


def test_an_epoch_ends_with_its_last_batch(points: Dataset) -> None:
    """Some loops do not ask for more batches than there are."""
    batches = shuffled(points)
    for epoch in range(3):
        iterator = iter(batches)
        assert numbers(next(iterator) for _ in range(len(batches))) == order(points, epoch)
        assert batches.epoch == epoch
    batches.set_epoch(2)
    assert numbers(batches) == order(points, 2)


def test_an_epoch_may_be_set_until_the_first_batch(points: Dataset) -> None:
    """Hooks at the beginning of an epoch run after `iter()`."""
    batches = shuffled(points)
    iterator = iter(batches)
    batches.set_epoch(4)
    assert numbers(iterator) == order(points, 4)
    iterator = iter(batches)
    batches.set_epoch(5)
    assert numbers(iterator) == order(points, 5)


def test_the_order_is_one_for_all_worlds(points: Dataset) -> None:
    for world_size in (2, 3):
        ranks = [shuffled(points, rank=rank, world_size=world_size) for rank in range(world_size)]
        steps = zip(*ranks, strict=True)
        assert numbers(batch for step in steps for batch in step) == order(points, 0)


def test_an_epoch_goes_on_from_a_state(points: Dataset) -> None:
    batches = shuffled(points)
    batches.set_epoch(1)
    taken: list[int] = []
    for batch in batches:
        taken += batch["n"].tolist()
        state = json.loads(json.dumps(batches.state_dict()))
        ranks = [shuffled(points, 2, rank=rank, world_size=2) for rank in range(2)]
        for rank in ranks:
            rank.load_state_dict(state)
            rank.set_epoch(1)
        rest = numbers(batch for step in zip(*ranks, strict=True) for batch in step)
        # Of a single sample that is left both ranks take a batch.
        assert taken + rest[: SAMPLES - len(taken)] == order(points, 1)
        assert {rank.epoch for rank in ranks} == {2}
    # After the epoch the state is the next one's beginning.
    again = shuffled(points)
    again.load_state_dict(batches.state_dict())
    assert numbers(again) == order(points, 2)


def test_a_state_is_continued_once(points: Dataset) -> None:
    batches = shuffled(points)
    next(iter(batches))
    state = batches.state_dict()
    for again in (0, 2):
        batches.load_state_dict(state)
        assert numbers(batches) == order(points, 0)[3:]
        batches.set_epoch(again)
        batches.set_epoch(0)
        assert numbers(batches) == order(points, 0)


def test_a_state_that_leaves_no_batch(points: Dataset) -> None:
    """Saved with the last batch of an epoch, or loaded where a batch needs more samples than are left."""
    batches = shuffled(points)
    iterator = iter(batches)
    states = [batches.state_dict() for _ in range(len(batches)) if next(iterator)]
    for state, again, count in (
        (states[-1], shuffled(points), SAMPLES),
        (states[-2], shuffled(points, drop_last=True), 33),
        (states[3], shuffled(points, 30, drop_last=True), 30),
    ):
        again.load_state_dict(state)
        assert again.epoch == 1
        assert numbers(again) == order(points, 1)[:count]
        # A loop that counts epochs by itself takes the rest of this one: nothing.
        again.load_state_dict(state)
        again.set_epoch(0)
        assert (again.epoch, list(again), again.epoch) == (0, [], 1)


def test_a_state_that_is_saved_before_iterating(points: Dataset) -> None:
    batches = shuffled(points)
    for _ in range(len(batches)):
        iterator = iter(batches)
    assert numbers(next(iterator) for _ in range(len(batches))) == order(points, 0)
    batches.set_epoch(1)
    again = shuffled(points)
    again.load_state_dict(batches.state_dict())
    assert numbers(again) == order(points, 1)


def test_an_old_iteration_does_not_count(points: Dataset) -> None:
    batches = shuffled(points)
    old, new = iter(batches), iter(batches)
    next(new)
    assert len(list(old)) == len(batches)
    assert (batches.epoch, batches.state_dict()["batches"]) == (0, 1)
    assert len(list(new)) == len(batches) - 1
    assert batches.epoch == 1


def test_states_that_do_not_fit(points: Dataset, tmp_path: Path) -> None:
    state = shuffled(points).state_dict()
    for other, message in (
        (shuffled(shards(tmp_path / "more", [*COUNTS, 2])), "another dataset of 34 samples than this one of 36"),
        # The same names and counts, and another width.
        (shuffled(shards(tmp_path / "wider", COUNTS, width=4)), "the dataset has been written again since"),
        (points.batches(3), "the order of Shuffle.* and this dataset takes that of the rows"),
        (points.batches(3, shuffle=True, seed=9), "use the same `shuffle`, `seed` and `window_bytes`"),
    ):
        with pytest.raises(sts.SafetensorsSparkError, match=message):
            other.load_state_dict(state)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_more_samples_than_are_chosen_at_a_time(tmp_path: Path, shuffle: bool) -> None:
    batches = shards(tmp_path / "large", [25_000, 20_000], width=1).batches(20_000, shuffle=shuffle)
    found = list(batches)
    assert [len(batch["n"]) for batch in found] == [20_000, 20_000, 5_000]
    assert sorted(numbers(found)) == list(range(45_000))


def test_dtypes(tmp_path: Path) -> None:
    x = np.arange(12).reshape(6, 2)
    columns = {"h": x.astype(ml_dtypes.bfloat16), "f": x.astype(np.float64), "n": x.astype(np.int16), "b": x % 2 == 0}
    save_file(columns, tmp_path / "0.safetensors")
    points = open_dataset(tmp_path)

    def dtypes(dtype: Any) -> dict[str, str]:
        (batch,) = points.batches(6, dtype=dtype)
        assert all(np.array_equal(batch[name], columns[name].astype(np.float32)) for name in columns)
        return {name: str(array.dtype) for name, array in batch.items()}

    as_they_are = {"b": "bool", "f": "float64", "h": "bfloat16", "n": "int16"}
    assert dtypes(None) == as_they_are
    # One dtype is for floating-point columns; labels stay what they are.
    assert dtypes(np.float32) == as_they_are | {"f": "float32", "h": "float32"}
    assert dtypes({"n": "float32", "h": np.float64}) == as_they_are | {"n": "float32", "h": "float64"}
    with pytest.raises(sts.SafetensorsSparkError, match=r"`dtype` names the column `y`; .* with the columns "):
        points.batches(6, dtype={"y": np.float32})


def test_a_transform_runs_in_the_threads(points: Dataset) -> None:
    names = set()

    def transform(batch: dict[str, Any]) -> tuple[Any, Any]:
        names.add(threading.current_thread().name.rpartition("_")[0])
        return batch["x"].sum(1), batch["n"]

    found = list(points.batches(10, transform=transform, dtype=np.float64))
    assert [len(x) for x, _ in found] == [10, 10, 10, 4]
    assert all(x.dtype == np.float64 and np.array_equal(x, 3 * n) for x, n in found)
    assert names == {"safetensors-spark-batches"}

    def fails(batch: dict[str, Any]) -> None:
        raise KeyError("label")

    with pytest.raises(KeyError, match="label"):
        list(points.batches(10, transform=fails))


def first_column(batch: dict[str, Any]) -> Any:
    return batch["n"]


def test_batches_are_sent_to_other_processes(points: Dataset) -> None:
    batches = shuffled(points, transform=first_column)
    batches.set_epoch(3)
    sent = pickle.loads(pickle.dumps(batches))
    assert np.concatenate(list(sent)).tolist() == order(points, 3)
    assert (batches.epoch, sent.epoch) == (3, 4)


def test_arguments_out_of_range(points: Dataset) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"batch_size": 0}, "batch_size is 0, expected 1 or more"),
        ({"window_bytes": 0}, "window_bytes is 0, expected 1 or more"),
        ({"threads": -1}, "threads is -1, expected 0 or more"),
        ({"rank": 2, "world_size": 2}, "rank is 2, expected 0 to 1"),
        ({"rank": -1}, "rank is -1, expected 0 to 0"),
        ({"rank": 1}, "rank is 1, expected 0 to 0"),
        ({"world_size": 0}, "world_size is 0, expected 1 or more"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            points.batches(**{"batch_size": 3} | options)
    with pytest.raises(ValueError, match="epoch is -1, expected 0 to 4294967295"):
        points.batches(3).set_epoch(-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": "3"}, "batch_size is '3', expected a whole number"),
        ({"batch_size": 2.5}, "batch_size is 2.5, expected a whole number"),
        ({"batch_size": True}, "batch_size is True, expected a whole number"),
        ({"threads": "a"}, "threads is 'a', expected a whole number"),
        ({"seed": None, "shuffle": True}, "seed is None, expected a whole number"),
        ({"rank": "0"}, "rank is '0', expected a whole number"),
        ({"transform": 3}, "transform is 3, expected a function that takes a batch"),
        ({"dtype": "bogus"}, "dtype is 'bogus', expected a dtype of numbers as NumPy has it, such as np.float32 or"),
        ({"dtype": "F16"}, "dtype is 'F16', expected"),
        ({"dtype": "S5"}, "dtype is 'S5', expected"),
        ({"dtype": {"x": "bogus"}}, "dtype is 'bogus', expected"),
        ({"dtype": {"x": None}}, "dtype is None, expected"),
    ],
)
def test_arguments_of_another_kind(points: Dataset, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        points.batches(**{"batch_size": 3} | options)
    assert message in str(raised.value)


def test_an_epoch_is_a_whole_number(points: Dataset) -> None:
    with pytest.raises(TypeError, match=r"epoch is 1\.5, expected a whole number"):
        points.batches(3).set_epoch(1.5)  # type: ignore[arg-type]


def test_repr(points: Dataset) -> None:
    where = points.samples.contents.location
    assert repr(points.batches(3)) == f"<Batches of {where}: 12 batches of 3 samples, in order, epoch 0>"
    batches = shuffled(points, 4, rank=1, world_size=2)
    batches.set_epoch(6)
    assert repr(batches) == f"<Batches of {where}: 5 batches of 4 samples, shuffled with seed 8, rank 1 of 2, epoch 6>"


def test_fewer_samples_than_ranks(tmp_path: Path) -> None:
    """A rank without a batch would have the others wait for ever."""
    points = shards(tmp_path / "few", [2, 1])
    with pytest.warns(UserWarning, match="has 3 samples for 5 ranks: .* some samples are taken by several ranks"):
        ranks = [points.batches(4, rank=rank, world_size=5) for rank in range(5)]
    assert [numbers(rank) for rank in ranks] == [[0], [1], [2], [0], [1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers(points.batches(4, rank=1, world_size=5, drop_last=True)) == []
        assert numbers(points.batches(4, rank=1, world_size=3)) == [1]


def test_iterators_at_the_same_time(points: Dataset) -> None:
    batches = shuffled(points)
    first, second = zip(*zip(batches, batches, strict=True), strict=True)
    assert numbers(first) == numbers(second) == order(points, 0)
    # The one that was begun last says how far it is.
    left, right = iter(batches), iter(batches)
    assert numbers([next(left), next(left), next(right)]) == [*order(points, 1)[:6], *order(points, 1)[:3]]
    assert batches.state_dict()["batches"] == 1
    assert numbers(left) == order(points, 1)[6:]
    assert (batches.epoch, batches.state_dict()["batches"]) == (1, 1)
    assert numbers(right) == order(points, 1)[3:]
    assert batches.epoch == 2


def test_no_samples(tmp_path: Path) -> None:
    batches = shards(tmp_path / "none", [0]).batches(4, shuffle=True)
    assert (len(batches), list(batches)) == (0, [])
