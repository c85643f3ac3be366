"""Batches of so many tokens at most."""

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Batches, Dataset, open_dataset

WINDOW = 900
LENGTHS = [[3, 0, 9, 1], [0, 0], [20], [2, 2, 2, 2, 2, 2, 7], [1, 14, 0], [5] * 9]


def sequences(folder: Path, lengths: list[list[int]]) -> Dataset:
    """Samples of so many `tokens`, which are the sample's number, as is `n`; and `text`."""
    folder.mkdir(exist_ok=True)
    first = 0
    for shard, some in enumerate(lengths):
        numbers = np.arange(first, first + len(some))
        ends, bytes_of = np.cumsum([0, *some]), b"".join(b"%d" % number for number in numbers)
        tensors: dict[str, Any] = {"n": numbers, "tokens": np.repeat(numbers, some), "tokens.offsets": ends}
        tensors["text"] = np.frombuffer(bytes_of, np.uint8)
        tensors["text.offsets"] = np.cumsum([0, *(len(str(number)) for number in numbers)])
        save_file(tensors, folder / f"{shard}.safetensors", {"column_kinds": '{"tokens":"ragged","text":"text"}'})
        first += len(some)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return sequences(tmp_path_factory.mktemp("tokens") / "sequences", LENGTHS)


def batches(ds: Dataset, most: int = 20, **options: Any) -> Batches:
    return ds.batches(max_tokens=most, window_bytes=WINDOW, seed=5, **options)


def taken(found: Any) -> list[list[int]]:
    return [batch["n"].tolist() for batch in found]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(9, 40),
    st.integers(1, 4),
    st.booleans(),
)
def test_each_sample_is_in_one_batch(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[list[int]], most: int, world_size: int, shuffle: bool
) -> None:
    ds = sequences(tmp_path_factory.mktemp("any") / "sequences", lengths)
    one = batches(ds, most, shuffle=shuffle)
    found = list(one)
    assert len(found) == len(one)
    samples = [number for batch in taken(found) for number in batch]
    assert sorted(samples) == list(range(len(ds)))
    assert shuffle or samples == sorted(samples)
    by_sample = [length for some in lengths for length in some]
    for batch in found:
        assert len(batch["n"]) > 0
        assert len(batch["tokens"].values) <= most
        assert batch["tokens"].lengths.tolist() == [by_sample[number] for number in batch["n"]]
        assert batch["text"] == [str(number) for number in batch["n"]]
    if len(found) < world_size:
        return
    ranks = [
        batches(ds, most, shuffle=shuffle, rank=rank, world_size=world_size, threads=0) for rank in range(world_size)
    ]
    steps = [batch for step in zip(*map(taken, ranks), strict=True) for batch in step]
    # Where the last step has fewer batches than ranks, these are taken again.
    whole = len(found) // world_size * world_size
    rest = taken(found)[whole:]
    assert steps == taken(found)[:whole] + [rest[rank % len(rest)] for rank in range(world_size if rest else 0)]
    dropping = [
        batches(ds, most, shuffle=shuffle, rank=rank, world_size=world_size, drop_last=True)
        for rank in range(world_size)
    ]
    assert [batch for step in zip(*map(taken, dropping), strict=True) for batch in step] == taken(found)[:whole]


def test_batches_are_as_full_as_their_samples_let_them_be(ds: Dataset) -> None:
    lengths = np.concatenate([np.array(some) for some in LENGTHS])
    for shuffle in (False, True):
        found = taken(batches(ds, 20, shuffle=shuffle))
        assert max(lengths[batch].sum() for batch in found) == 20
        if not shuffle:
            # Within a window the next sample did not fit.
            inner = [pair for pair in pairwise(found) if pair[1][0] not in (4, 6, 7, 14, 17)]
            assert inner
            assert all(lengths[one].sum() + lengths[other[0]] > 20 for one, other in inner)


def test_epochs_have_the_same_batches_in_another_order(ds: Dataset) -> None:
    one = batches(ds, shuffle=True)
    first, second = taken(one), taken(one)
    assert first != second
    assert sorted(first) == sorted(second)
    assert taken(ds.batches(max_tokens=20, shuffle=True, seed=6, window_bytes=WINDOW)) != first


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_go_on_from_any_step(ds: Dataset, shuffle: bool) -> None:
    whole = taken(batches(ds, shuffle=shuffle))
    for step in range(len(whole)):
        one = batches(ds, shuffle=shuffle)
        begun = taken(islice(iter(one), step))
        # Of several ranks.
        ranks = [batches(ds, shuffle=shuffle, rank=rank, world_size=2, drop_last=True) for rank in range(2)]
        for rank in ranks:
            rank.load_state_dict(one.state_dict())
        left = [batch for pair in zip(*map(taken, ranks), strict=True) for batch in pair]
        expected = whole[step:]
        if len(expected) > 1:
            assert begun + left == whole[: len(begun) + len(expected) // 2 * 2]
        again = batches(ds, shuffle=shuffle)
        again.load_state_dict(one.state_dict())
        assert begun + taken(again) == whole
    with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
        batches(ds, 21, shuffle=shuffle).load_state_dict(one.state_dict())
    with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
        ds.batches(2).load_state_dict(one.state_dict())


def test_wrong_arguments_are_errors(ds: Dataset, tmp_path: Path) -> None:
    with pytest.raises(
        sts.SafetensorsSparkError, match=r"sample 6, in 2.safetensors, has 20 values of `tokens`, expec"
    ):
        batches(ds, 19)
    for wrong in ({}, {"batch_size": 3, "max_tokens": 20}):
        with pytest.raises(TypeError, match="either `batch_size` or `max_tokens`"):
            ds.batches(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="there is no `max_tokens`"):
        ds.batches(3, tokens="tokens")
    with pytest.raises(ValueError, match="nodes is 2, expected 1 with `max_tokens`"):
        batches(ds, world_size=2, nodes=2)
    with pytest.raises(sts.SafetensorsSparkError, match=r"`tokens` names `n`, and the columns .* are tokens, text"):
        ds.batches(max_tokens=20, tokens="n")
    assert max(len("".join(batch["text"])) for batch in ds.batches(max_tokens=6, tokens="text")) == 6
    with pytest.raises(TypeError, match="`max_tokens` is for samples in their own order"):
        sts.dataset.mix([(ds, 1)]).batches(max_tokens=20)
    damaged = sequences(tmp_path / "damaged", [[3, 3]])
    tensors = {"n": np.arange(2), "tokens": np.arange(6), "tokens.offsets": np.array([0, 7, 6])}
    save_file(tensors, tmp_path / "damaged" / "0.safetensors", {"column_kinds": '{"tokens":"ragged"}'})
    damaged = open_dataset(tmp_path / "damaged")
    with pytest.raises(sts.DamagedShardError, match=r"0.safetensors: tensor `tokens.offsets` decreases from 7 to 6"):
        damaged.batches(max_tokens=20)
