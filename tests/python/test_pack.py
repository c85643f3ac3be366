"""Samples packed into sequences of one length."""

from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Batches, Dataset, Packs, open_dataset
from safetensors_spark.dataset._best_fit import best_fit

WINDOW = 900
LENGTHS = [[3, 0, 9, 1], [0, 0], [20], [2, 2, 2, 2, 2, 2, 7], [1, 14, 0], [5] * 9]


def sequences(folder: Path, lengths: list[list[int]]) -> Dataset:
    """Samples of `tokens`, which are numbered from 1 on, and `labels`, of shape `[length, 2]`."""
    folder.mkdir(exist_ok=True)
    begin = 1
    for shard, some in enumerate(lengths):
        values, ends = np.arange(begin, begin + sum(some)), np.cumsum([0, *some])
        tensors: dict[str, Any] = {"tokens": values, "labels": np.stack([values, -values], 1).astype(np.int32)}
        tensors |= {f"{name}.offsets": ends for name in list(tensors)}
        save_file(tensors, folder / f"{shard}.safetensors", {"column_kinds": '{"tokens":"ragged","labels":"ragged"}'})
        begin += sum(some)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return sequences(tmp_path_factory.mktemp("pack") / "sequences", LENGTHS)


def batches(packs: Packs, size: int = 2, **options: Any) -> Batches:
    return packs.batches(size, window_bytes=WINDOW, seed=5, **options)


def taken(found: Any) -> list[list[int]]:
    return [row for batch in found for row in batch["tokens"].tolist()]


def documents(batch: dict[str, Any]) -> list[list[int]]:
    """The documents of a batch, as FlashAttention has them."""
    flat, ends = batch["tokens"].reshape(-1).tolist(), batch["cu_seqlens"].tolist()
    return [flat[begin:end] for begin, end in pairwise(ends)]


def check(batch: dict[str, Any], length: int) -> None:
    """That all that tells documents apart says the same."""
    tokens, positions, ids = batch["tokens"], batch["input_pos"], batch["document_ids"]
    assert tokens.shape == positions.shape == ids.shape == (len(tokens), length)
    assert (positions.dtype, ids.dtype, batch["cu_seqlens"].dtype) == (np.int64, np.int32, np.int32)
    flat = [(row, number) for row, numbers in enumerate(ids.tolist()) for number in numbers]
    runs = [0, *(at for at in range(1, len(flat)) if flat[at] != flat[at - 1]), len(flat)]
    assert batch["cu_seqlens"].tolist() == runs
    assert batch["max_seqlen"] == max(np.diff(runs))
    assert (ids[:, 0] == 0).all()
    assert np.isin(np.diff(ids, axis=1), (0, 1)).all()
    for row in range(len(tokens)):
        starts = np.flatnonzero(np.diff(ids[row], prepend=-1))
        for begin, end in zip(starts, [*starts[1:], length], strict=True):
            first = 0 if tokens[row, begin] else positions[row, begin - 1] + 1
            assert positions[row, begin:end].tolist() == list(range(first, first + end - begin))
    assert np.array_equal(batch["labels"][..., 0], tokens)
    assert np.array_equal(batch["labels"][..., 1], -tokens)


@pytest.mark.filterwarnings("ignore:.* to pack")
@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["split", "truncate"]),
)
def test_each_sample_is_in_one_pack(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[list[int]],
    length: int,
    size: int,
    world_size: int,
    shuffle: bool,
    long: Any,
) -> None:
    assume(any(map(any, lengths)))
    ds = sequences(tmp_path_factory.mktemp("any") / "sequences", lengths)
    packs = ds.pack(length, long=long, window_bytes=WINDOW)
    found = list(batches(packs, size, shuffle=shuffle))
    rows = taken(found)
    assert len(rows) == len(packs)
    for batch in found:
        check(batch, length)
    docs = sorted(doc for batch in found for doc in documents(batch) if doc[0])
    whole = [sample.tolist() for sample in ds["tokens"]]
    split = [sample[begin : begin + length] for sample in whole for begin in range(0, len(sample), length)]
    assert docs == (split if long == "split" else [sample[:length] for sample in whole if sample])
    if len(packs) < world_size:
        return
    ranks = [batches(packs, size, shuffle=shuffle, rank=rank, world_size=world_size) for rank in range(world_size)]
    assert taken(batch for step in zip(*ranks, strict=True) for batch in step) == rows


@given(st.lists(st.integers(1, 20), max_size=60), st.integers(20, 40))
def test_it_is_the_best_fit(sizes: list[int], length: int) -> None:
    """As when each is placed by itself, where bins of equal room are the same."""
    rooms: list[int] = []
    for size in sorted(sizes, reverse=True):
        room = min((room for room in rooms if room >= size), default=None)
        if room is None:
            rooms.append(length - size)
        else:
            rooms[rooms.index(room)] -= size
    found = best_fit(np.array(sizes, np.int64), length)
    taken = np.bincount(found, sizes) if sizes else np.array([])
    assert sorted(length - taken) == sorted(rooms)


def test_padding_and_order(ds: Dataset) -> None:
    (batch,) = batches(ds.pack(20, padding={"labels": -100}, window_bytes=1 << 30), 100)
    assert taken([batch])[0][:3] == [1, 2, 3]
    empty = batch["tokens"] == 0
    assert empty.any()
    assert (batch["labels"][empty] == -100).all()
    assert (batch["tokens"] != 0).sum() == sum(map(sum, LENGTHS))


@pytest.mark.parametrize("shuffle", [False, True])
def test_packs_go_on_from_any_step(ds: Dataset, shuffle: bool) -> None:
    packs = ds.pack(20, window_bytes=WINDOW)
    epochs = batches(packs, shuffle=shuffle)
    for epoch in range(2):
        whole = taken(epochs)
        for step in range(len(epochs)):
            one = batches(packs, shuffle=shuffle)
            one.set_epoch(epoch)
            begun = taken(islice(iter(one), step))
            again = batches(ds.pack(20, window_bytes=WINDOW), 3, shuffle=shuffle)
            again.load_state_dict(one.state_dict())
            assert begun + taken(again) == whole
    first, second = taken(epochs), taken(epochs)
    assert sorted(first) == sorted(second)
    assert (first != second) == shuffle
    with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
        batches(ds.pack(20, long="split", window_bytes=WINDOW), shuffle=shuffle).load_state_dict(epochs.state_dict())


def test_wrong_arguments_are_errors(ds: Dataset, tmp_path: Path) -> None:
    message = r"sample 6, in 2.safetensors, has 20 values of `.*`, expected 19 at most: or say `long='split'`"
    with pytest.raises(sts.SafetensorsSparkError, match=message):
        ds.pack(19)
    with pytest.raises(ValueError, match="long is 'cut', expected one of error, split, truncate"):
        ds.pack(20, long="cut")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="length is 0, expected 1 to"):
        ds.pack(0)
    with pytest.raises(sts.SafetensorsSparkError, match="`padding` names the column `other`"):
        ds.pack(20, padding={"other": 1})
    with pytest.raises(ValueError, match=r"padding of the column `labels` is 0.5, expected a whole number from -2147"):
        ds.pack(20, padding={"labels": 0.5})
    with pytest.raises(TypeError, match="padding of the column `tokens` is 'x', expected a number"):
        ds.pack(20, padding={"tokens": "x"})  # type: ignore[dict-item]
    other = {"input_pos": np.arange(6), "input_pos.offsets": np.array([0, 2, 6])}
    save_file(other, tmp_path / "0.safetensors", {"column_kinds": '{"input_pos":"ragged"}'})
    with pytest.raises(sts.SafetensorsSparkError, match="has a column `input_pos`, which packs have of their own"):
        open_dataset(tmp_path).pack(20)
    save_file({"x": np.zeros(2)}, tmp_path / "0.safetensors")
    with pytest.raises(sts.SafetensorsSparkError, match="the column `x` is fixed, and packs are of columns"):
        open_dataset(tmp_path).pack(20)


def test_packs_that_values_do_not_fill(tmp_path: Path) -> None:
    ds = sequences(tmp_path / "short", [[3, 0], [2]])
    with pytest.warns(UserWarning, match="short has 5 values to pack, so that the only pack of 8 is filled up with 3"):
        packs = ds.pack(8)
    assert taken(packs.batches(1)) == [[1, 2, 3, 4, 5, 0, 0, 0]]
    with pytest.raises(sts.SafetensorsSparkError, match="all 3 samples are empty, and empty samples are in no pack"):
        sequences(tmp_path / "empty", [[0, 0], [0]]).pack(8)
    assert list(sequences(tmp_path / "none", [[]]).pack(8).batches(2)) == []
