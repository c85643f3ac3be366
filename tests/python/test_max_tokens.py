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
from safetensors_spark.dataset._max_tokens import share

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
    ranks = [
        batches(ds, most, shuffle=shuffle, rank=rank, world_size=world_size, threads=0) for rank in range(world_size)
    ]
    steps = [batch for step in zip(*map(taken, ranks), strict=True) for batch in step]
    whole = len(found) // world_size * world_size
    assert steps[:whole] == taken(found)[:whole]
    # Where the last step has fewer batches than ranks, these share them.
    rest, parts = [number for batch in taken(found)[whole:] for number in batch], steps[whole:]
    assert len(parts) == (world_size if rest else 0)
    assert all(any(set(part) <= set(batch) for batch in taken(found)[whole:]) for part in parts)
    assert all(parts)
    assert [number for part in parts for number in part][: len(rest)] == rest
    assert len(rest) < world_size or sum(map(len, parts)) == len(rest)
    dropping = [
        batches(ds, most, shuffle=shuffle, rank=rank, world_size=world_size, drop_last=True)
        for rank in range(world_size)
    ]
    assert [batch for step in zip(*map(taken, dropping), strict=True) for batch in step] == taken(found)[:whole]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), min_size=1, max_size=6),
    st.integers(9, 40),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_nodes_have_parts_of_an_epoch(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[list[int]],
    most: int,
    nodes: int,
    ranks: int,
    shuffle: bool,
    drop_last: bool,
    data: Any,
) -> None:
    ds = sequences(tmp_path_factory.mktemp("any") / "sequences", lengths)
    alone = taken(batches(ds, most, shuffle=shuffle))
    nodes = min(nodes, len(alone))
    world = nodes * ranks
    options: dict[str, Any] = {"world_size": world, "nodes": nodes, "shuffle": shuffle, "drop_last": drop_last}
    parts = [taken(batches(ds, most, rank=rank, threads=0, **options)) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    found = [number for part in parts for batch in part for number in batch]
    assert all(any(set(batch) <= set(one) for one in alone) and batch for part in parts for batch in part)
    if drop_last:
        assert len(set(found)) == len(found)
        assert len(parts[0]) == len(alone) // nodes // ranks
    else:
        assert set(found) == set(range(len(ds)))
        last = [batch for part in parts for batch in part[-1:]]
        # A sample is taken again only where the last step has fewer than ranks that share it.
        assert len(set(found)) == len(found) or min(map(len, last)) == 1
        assert len(parts[0]) == -(-len(alone) // nodes) // ranks + (-(-len(alone) // nodes) % ranks > 0)
    step = data.draw(st.integers(0, len(parts[0])))
    for rank in range(world):
        one = batches(ds, most, rank=rank, threads=0, **options)
        begun = taken(islice(iter(one), step))
        again = batches(ds, most, rank=rank, threads=1, **options)
        again.load_state_dict(one.state_dict())
        assert begun + (taken(again) if again.epoch == 0 else []) == parts[rank]
    # As many nodes with other ranks continue.
    others = [batches(ds, most, rank=rank, **options | {"world_size": nodes}) for rank in range(nodes)]
    for other in others:
        other.load_state_dict(one.state_dict())
    left = [number for other in others if other.epoch == 0 for batch in taken(other) for number in batch]
    before = [number for part in parts for batch in part[:step] for number in batch]
    assert drop_last or set(before) | set(left) == set(range(len(ds)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 20))
def test_ranks_share_all_samples(counts: list[int], more: int) -> None:
    ranks = len(counts) + more
    parts = [share(counts, rank, ranks) for rank in range(ranks)]
    taken = [(batch, number) for batch, begin, end in parts for number in range(begin, end)]
    assert all(begin < end for _, begin, end in parts)
    whole = [(batch, number) for batch, count in enumerate(counts) for number in range(count)]
    assert taken[: len(whole)] == whole
    assert len(taken) == max(len(whole), ranks)


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
    with pytest.raises(ValueError, match=r"and is not greater than the number of batches, which is \d+$"):
        batches(ds, world_size=50, nodes=50)
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
