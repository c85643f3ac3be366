"""Mixtures of datasets: shares, one order for all worlds, epochs of each dataset, states."""

from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Dataset, Mix, mix, open_dataset
from safetensors_spark.dataset._shares import Shares

WINDOW = 200


def numbered(folder: Path, first: int, counts: list[int]) -> Dataset:
    """Shards of so many samples, which are numbered from `first` on."""
    folder.mkdir()
    for shard, count in enumerate(counts):
        save_file({"n": np.arange(first, first + count)}, folder / f"{shard}.safetensors")
        first += count
    return open_dataset(folder)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    folder = tmp_path_factory.mktemp("parts")
    return [
        numbered(folder / "a", 0, [7, 30, 13]),
        numbered(folder / "b", 1000, [5, 6]),
        numbered(folder / "c", 2000, [3]),
    ]


def growing(step: int) -> float:
    return step / 10


def mixture(parts: list[Dataset], **options: Any) -> Mix:
    return mix([(parts[0], 0.6), (parts[1], growing), (parts[2], 0.1)], seed=4, step_samples=10, **options)


def taken(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["n"].tolist()]


def stream(mixed: Mix, epochs: int, **options: Any) -> list[int]:
    batches = mixed.batches(7, threads=0, window_bytes=WINDOW, **options)
    return [number for _ in range(epochs) for number in taken(batches)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_dataset_is_taken_as_a_whole_again_and_again(parts: list[Dataset], shuffle: bool) -> None:
    found = stream(mixture(parts), 8, shuffle=shuffle)
    assert len(found) == 8 * sum(map(len, parts))
    for part in parts:
        own = part["n"].tolist()
        mine = [number for number in found if number in own]
        epochs = [mine[begin : begin + len(own)] for begin in range(0, len(mine), len(own))]
        assert len(epochs) > 1
        assert all(sorted(epoch) == own for epoch in epochs[:-1])
        assert len(set(epochs[-1])) == len(epochs[-1])
        if not shuffle:
            assert epochs[0] == own
        elif len(own) > 3:
            assert epochs[0] != own
            assert epochs[0] != epochs[1][: len(epochs[0])]


def test_steps_have_the_shares_of_their_weights(parts: list[Dataset]) -> None:
    found = stream(mix([(parts[0], 2), (parts[1], 1), (parts[2], 0)], step_samples=9), 4)
    for begin in range(0, len(found) - 9, 9):
        assert Counter(number // 1000 for number in found[begin : begin + 9]) == {0: 6, 1: 3}
    # Small shares come once in a while.
    rare = stream(mix([(parts[0], 0.99), (parts[2], 0.01)], step_samples=4, samples=4096), 1)
    assert Counter(number // 1000 for number in rare) == {0: 4055, 2: 41}
    # A weight that depends on the step.
    late = stream(mix([(parts[0], 1), (parts[1], lambda step: 1 if step >= 3 else 0)], step_samples=10), 1)
    assert [number // 1000 for number in late[:30]] == [0] * 30
    assert Counter(number // 1000 for number in late[30:40]) == {0: 5, 1: 5}


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 2), st.booleans(), st.integers(0, 3))
def test_the_order_is_one_for_all_worlds_and_batch_sizes(
    parts: list[Dataset], size: int, world_size: int, nodes: int, shuffle: bool, epoch: int
) -> None:
    mixed = mixture(parts, samples=61)
    expected = stream(mixed, epoch + 1, shuffle=shuffle)[epoch * 61 :]
    world = world_size * nodes
    ranks = [
        mixed.batches(
            size, shuffle=shuffle, window_bytes=WINDOW, rank=rank, world_size=world, nodes=nodes, threads=rank % 2
        )
        for rank in range(world)
    ]
    for one in ranks:
        one.set_epoch(epoch)
    steps = list(zip(*ranks, strict=True))
    if nodes == 1:
        assert taken(batch for step in steps for batch in step) == expected
    assert Counter(taken(batch for step in steps for batch in step)) == Counter(expected)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_mixture_goes_on_from_any_step(parts: list[Dataset], shuffle: bool) -> None:
    mixed = mixture(parts, samples=50)
    whole = stream(mixed, 3, shuffle=shuffle)
    for number in range(3 * 8):
        epoch, step = divmod(number, 8)
        batches = mixed.batches(7, shuffle=shuffle, window_bytes=WINDOW)
        batches.set_epoch(epoch)
        list(islice(iterator := iter(batches), step))
        state = batches.state_dict()
        del iterator
        again = mixture(parts, samples=50).batches(5, shuffle=shuffle, window_bytes=WINDOW)
        again.load_state_dict(state)
        assert taken(again) == whole[epoch * 50 + 7 * step : epoch * 50 + 50]


def test_a_state_fits_no_other_mixture(parts: list[Dataset]) -> None:
    a, b, _ = parts
    state = mix([(a, 1), (b, 1)]).batches(3).state_dict()
    others = [mix([(a, 1), (b, 2)]), mix([(b, 1), (a, 1)]), mix([(a, 1), (b, 1)], seed=1), mix([(a, 1)])]
    for other in others:
        with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
            other.batches(3).load_state_dict(state)
    mix([(a, 1), (b, 1)]).batches(3).load_state_dict(state)


def test_datasets_without_a_manifest_have_files_of_one_name(parts: list[Dataset]) -> None:
    """What is mapped of one is not taken for what is of the other."""
    found = taken(mix([(parts[0], 1), (parts[1], 1), (parts[2], 1)], step_samples=3).batches(64))
    assert set(found) <= {number for part in parts for number in part["n"].tolist()}
    assert {number // 1000 for number in found} == {0, 1, 2}


def test_two_of_one_dataset_have_orders_of_their_own(parts: list[Dataset]) -> None:
    found = stream(mix([(parts[0], 1), (parts[0], 1)], step_samples=100), 1, shuffle=True)
    assert Counter(found) == dict.fromkeys(range(50), 2)
    assert found[:50] != found[50:]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6), st.integers(1, 50), st.integers(0, 3000))
@settings(deadline=None)
def test_what_steps_take_adds_up(weights: list[float], size: int, step: int) -> None:
    if not sum(weights):
        weights[0] = 1
    shares = Shares(weights, size, 1)
    assert sum(shares.before(step)) == step * size
    after = np.array(shares.before(step)) + shares.of(step)
    assert after.tolist() == shares.before(step + 1)
    assert (shares.of(step) >= 0).all()
    # Functions that always say the same are such weights.
    constant: list[Callable[[int], float]] = [lambda _, weight=weight: weight for weight in weights]  # type: ignore[misc]
    assert Shares(constant, size, 1).before(step) == shares.before(step)


def test_wrong_arguments_are_errors(parts: list[Dataset], tmp_path: Path) -> None:
    a, b, _ = parts
    for wrong in ([a, b], [("a", 1)], [(a,)]):
        with pytest.raises(TypeError, match="expected a pair of a dataset and its weight"):
            mix(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no datasets"):
        mix([])
    with pytest.raises(ValueError, match="the weights of step 0 are all 0"):
        mix([(a, 0), (b, 0)])
    with pytest.raises(ValueError, match=r"a weight of step 0 is -1.0, expected a number from 0 on"):
        mix([(a, -1), (b, 2)])
    with pytest.raises(TypeError, match="a weight of step 0 is 'half', expected a number"):
        mix([(a, "half")])  # type: ignore[list-item]
    failing = mix([(a, lambda step: 1 - step)], step_samples=5).batches(5, threads=0)
    with pytest.raises(ValueError, match="the weights of step 1 are all 0"):
        list(failing)
    wrongs: dict[str, dict[str, Any]] = {
        "names": {"m": np.zeros(3, np.int64)},
        "dtypes": {"n": np.zeros(3, np.int32)},
        "shapes": {"n": np.zeros((3, 2), np.int64)},
    }
    for name, tensors in wrongs.items():
        (tmp_path / name).mkdir()
        save_file(tensors, tmp_path / name / "0.safetensors")
        message = "only one of them is read with the column" if name == "names" else "their column `n` is fixed"
        with pytest.raises(sts.SafetensorsSparkError, match=f"a and .*{name} cannot be mixed: {message}"):
            mix([(a, 1), (open_dataset(tmp_path / name), 1)])
    assert "Mix of" in repr(mix([(a, 1), (b, 1)]))
