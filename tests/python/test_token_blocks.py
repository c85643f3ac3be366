"""Streams of tokens in blocks of one length."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Dataset, open_dataset

# Of each shard the lengths of its samples.
LENGTHS = [[3, 0, 9, 1], [0, 0], [25], [2, 2, 2, 2, 2, 2, 7], [1, 14, 0]]
TOTAL = sum(map(sum, LENGTHS))
# Windows of some shards.
WINDOW = 600


def sequences(folder: Path, lengths: list[list[int]]) -> Dataset:
    """Samples `tokens`, whose values are numbered, and `twice`, of shape `[length, 2]`."""
    folder.mkdir(exist_ok=True)
    begin = 0
    for shard, some in enumerate(lengths):
        values, offsets = np.arange(begin, begin + sum(some)), np.cumsum([0, *some])
        tensors: dict[str, Any] = {"tokens": values, "twice": np.stack([values, values], 1).astype(np.int32)}
        tensors |= {f"{name}.offsets": offsets for name in list(tensors)}
        kinds = {"column_kinds": '{"tokens":"ragged","twice":"ragged"}'}
        save_file(tensors, folder / f"{shard}.safetensors", kinds)
        begin += sum(some)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return sequences(tmp_path_factory.mktemp("blocks") / "sequences", LENGTHS)


def taken(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch["tokens"].tolist()]


def rows(ds: Dataset, length: int, epoch: int, shuffle: bool) -> list[list[int]]:
    """All blocks of an epoch."""
    batches = ds.blocks(length).batches(1000, shuffle=shuffle, seed=2, window_bytes=WINDOW)
    batches.set_epoch(epoch)
    return taken(batches)


@pytest.mark.parametrize("length", [1, 4, 7, TOTAL])
def test_blocks_follow_each_other(ds: Dataset, length: int) -> None:
    blocks = ds.blocks(length)
    assert len(blocks) == TOTAL // length
    found = list(blocks.batches(3))
    values = [value for row in taken(found) for value in row]
    assert values == list(range(len(blocks) * length))
    for batch in found:
        assert batch["tokens"].shape[1:] == (length,)
        assert batch["twice"].dtype == np.int32
        assert np.array_equal(batch["twice"], np.stack([batch["tokens"], batch["tokens"]], -1))


@pytest.mark.parametrize("length", [1, 5, 16])
def test_samples_are_shuffled_and_stay_whole(ds: Dataset, length: int) -> None:
    stream = [value for row in rows(ds, length, 0, True) for value in row]
    assert len(stream) == TOTAL // length * length
    assert len(set(stream)) == len(stream)
    samples = {sample[0]: sample.tolist() for sample in ds["tokens"] if len(sample)}
    at, order = 0, []
    while at < len(stream):
        sample = samples[stream[at]]
        assert stream[at : at + len(sample)] == sample[: len(stream) - at]
        order.append(stream[at])
        at += len(sample)
    assert order != sorted(order)
    assert rows(ds, length, 1, True) != rows(ds, length, 0, True)


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=6),
    length=st.integers(1, 12),
    size=st.integers(1, 4),
    world_size=st.integers(1, 3),
    shuffle=st.booleans(),
)
def test_blocks_are_the_same_for_all_worlds(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[list[int]],
    length: int,
    size: int,
    world_size: int,
    shuffle: bool,
) -> None:
    assume(sum(map(sum, lengths)) >= length)
    ds = sequences(tmp_path_factory.mktemp("any") / "sequences", lengths)
    blocks = ds.blocks(length)
    expected = rows(ds, length, 0, shuffle)
    assert len(expected) == len(blocks) == sum(map(sum, lengths)) // length
    values = [value for row in expected for value in row]
    assert len(set(values)) == len(values)
    if len(blocks) < world_size:
        return
    ranks = [
        blocks.batches(size, shuffle=shuffle, seed=2, window_bytes=WINDOW, rank=rank, world_size=world_size, threads=0)
        for rank in range(world_size)
    ]
    assert taken(batch for step in zip(*ranks, strict=True) for batch in step) == expected
    if world_size > 1:
        parts = [
            blocks.batches(
                size, shuffle=shuffle, seed=2, window_bytes=WINDOW, rank=rank, world_size=world_size, nodes=world_size
            )
            for rank in range(world_size)
        ]
        found = Counter(map(tuple, taken(batch for part in parts for batch in part)))
        assert found == Counter(map(tuple, expected))


def test_blocks_go_on_from_any_step(ds: Dataset) -> None:
    blocks = ds.blocks(3)
    for epoch in range(2):
        expected = rows(ds, 3, epoch, True)
        for step in range(-(-len(blocks) // 2)):
            batches = blocks.batches(2, shuffle=True, seed=2, window_bytes=WINDOW)
            batches.set_epoch(epoch)
            iterator = iter(batches)
            begun = taken(islice(iterator, step))
            again = blocks.batches(5, shuffle=True, seed=2, window_bytes=WINDOW)
            again.load_state_dict(batches.state_dict())
            assert begun + taken(again) == expected


def test_a_state_fits_no_other_length(ds: Dataset) -> None:
    state = ds.blocks(3).batches(2).state_dict()
    for other in (ds.blocks(4), ds):
        with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
            other.batches(2).load_state_dict(state)


def test_text_is_blocks_of_bytes(tmp_path: Path) -> None:
    tensors = {"text": np.frombuffer(b"abcdefg", np.uint8), "text.offsets": np.array([0, 3, 7])}
    save_file(tensors, tmp_path / "0.safetensors", {"column_kinds": '{"text":"text"}'})
    (batch,) = open_dataset(tmp_path).blocks(3).batches(2)
    assert [row.tobytes() for row in batch["text"]] == [b"abc", b"def"]


def test_what_has_no_blocks_is_an_error(tmp_path: Path) -> None:
    fixed = {"tokens": np.arange(6), "tokens.offsets": np.array([0, 2, 6]), "x": np.zeros(2)}
    save_file(fixed, tmp_path / "0.safetensors", {"column_kinds": '{"tokens":"ragged"}'})
    with pytest.raises(sts.SafetensorsSparkError, match=r"the column `x` is fixed, and blocks are .* columns=\[...\]"):
        open_dataset(tmp_path).blocks(2)
    assert len(open_dataset(tmp_path, columns=["tokens"]).blocks(2)) == 3
    with pytest.raises(ValueError, match="length is 0, expected 1 to"):
        open_dataset(tmp_path, columns=["tokens"]).blocks(0)
    other = {"a": np.arange(6), "a.offsets": np.array([0, 2, 6]), "b": np.arange(6), "b.offsets": np.array([0, 3, 6])}
    save_file(other, tmp_path / "0.safetensors", {"column_kinds": '{"a":"ragged","b":"ragged"}'})
    with pytest.raises(sts.InvalidTensorError, match=r"0.safetensors the samples of the columns `a` and `b` differ"):
        list(open_dataset(tmp_path).blocks(2).batches(1))


def test_blocks_that_no_values_fill_are_refused(ds: Dataset, tmp_path: Path) -> None:
    with pytest.raises(sts.SafetensorsSparkError, match=rf"sequences: all samples together have {TOTAL} values, which"):
        ds.blocks(TOTAL + 1)
    with pytest.raises(sts.SafetensorsSparkError, match="together have 0 values, which fill no block of 1"):
        sequences(tmp_path / "empty", [[0, 0]]).blocks(1)
    # A dataset without samples has no blocks, as it has no batches.
    assert list(sequences(tmp_path / "none", [[]]).blocks(4).batches(2)) == []
