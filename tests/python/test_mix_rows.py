"""Mixtures of blocks, and of packs."""

from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import Blocks, Dataset, Mix, Packs, mix, open_dataset
from safetensors_spark.dataset._permutation import mixed

WINDOW = 900
LENGTH = 6
# Of each dataset and shard the lengths of its samples. The last dataset is taken several times within a step.
LENGTHS = [[[3, 0, 5, 1], [0, 0], [6], [2, 2, 2, 6]], [[4, 4, 4], [1, 5, 6, 0, 2]], [[6, 3]]]
ROWS = ["blocks", "pack"]
Rows: TypeAlias = Blocks | Packs


def sequences(folder: Path, first: int, lengths: list[list[int]]) -> Dataset:
    """Samples of `tokens`, which are numbered from `first` on, and `labels`, of shape `[length, 2]`."""
    folder.mkdir()
    for shard, some in enumerate(lengths):
        values, ends = np.arange(first, first + sum(some)), np.cumsum([0, *some])
        tensors: dict[str, Any] = {"tokens": values, "labels": np.stack([values, -values], 1).astype(np.int32)}
        tensors |= {f"{name}.offsets": ends for name in list(tensors)}
        save_file(tensors, folder / f"{shard}.safetensors", {"column_kinds": '{"tokens":"ragged","labels":"ragged"}'})
        first += sum(some)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    folder = tmp_path_factory.mktemp("rows")
    return [sequences(folder / str(part), 1 + 1000 * part, lengths) for part, lengths in enumerate(LENGTHS)]


def rows_of(datasets: list[Dataset], what: str) -> list[Rows]:
    if what == "blocks":
        return [one.blocks(LENGTH) for one in datasets]
    return [one.pack(LENGTH, padding=-1, window_bytes=WINDOW) for one in datasets]


def growing(step: int) -> float:
    return 0.2 + step / 10


def mixture(parts: list[Rows], **options: Any) -> Mix:
    return mix([(parts[0], 0.5), (parts[1], growing), (parts[2], 0.3)], seed=4, step_samples=10, **options)


def taken(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch["tokens"].tolist()]


def checked(batches: Any) -> Any:
    """The batches, after a look at what they have beside tokens."""
    for batch in batches:
        tokens = batch["tokens"]
        there = tokens != -1
        assert np.array_equal(batch["labels"][there], np.stack([tokens[there], -tokens[there]], 1))
        if "cu_seqlens" in batch:
            flat = batch["document_ids"] + 1000 * np.arange(len(tokens))[:, None]
            begins = np.flatnonzero(np.diff(flat.reshape(-1), prepend=-1))
            assert batch["cu_seqlens"].tolist() == [*begins.tolist(), tokens.size]
            assert batch["max_seqlen"] == np.diff(batch["cu_seqlens"]).max()
        yield batch


def stream(batches: Any, epochs: int) -> list[list[int]]:
    return [row for _ in range(epochs) for row in taken(checked(batches))]


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_dataset_has_its_own_rows_in_its_own_order(datasets: list[Dataset], what: str, shuffle: bool) -> None:
    parts = rows_of(datasets, what)
    found = stream(mixture(parts).batches(7, shuffle=shuffle, seed=3, window_bytes=WINDOW), 9)
    assert len(found) == 9 * sum(map(len, parts))
    for number, part in enumerate(parts):
        own = part.batches(100, shuffle=shuffle, seed=mixed(3, number), window_bytes=WINDOW)
        mine = [row for row in found if row[0] // 1000 == number]
        assert len(mine) > 2 * len(part)
        assert mine == stream(own, len(mine) // len(part) + 1)[: len(mine)]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(ROWS), st.integers(1, 9), st.integers(1, 4), st.booleans(), st.integers(0, 3))
def test_the_order_is_one_for_all_worlds_and_batch_sizes(
    datasets: list[Dataset], what: str, size: int, world_size: int, shuffle: bool, epoch: int
) -> None:
    parts = rows_of(datasets, what)
    options: dict[str, Any] = {"shuffle": shuffle, "window_bytes": WINDOW}
    expected = stream(mixture(parts, samples=31).batches(7, **options), epoch + 1)[epoch * 31 :]
    ranks = [
        mixture(parts, samples=31).batches(size, rank=rank, world_size=world_size, threads=rank % 2, **options)
        for rank in range(world_size)
    ]
    for one in ranks:
        one.set_epoch(epoch)
    assert taken(batch for step in zip(*map(checked, ranks), strict=True) for batch in step) == expected


@pytest.mark.parametrize("what", ROWS)
def test_it_goes_on_from_any_step(datasets: list[Dataset], what: str) -> None:
    parts = rows_of(datasets, what)
    options: dict[str, Any] = {"shuffle": True, "window_bytes": WINDOW}
    whole = stream(mixture(parts, samples=20).batches(7, **options), 3)
    for number in range(3 * 3):
        epoch, step = divmod(number, 3)
        batches = mixture(parts, samples=20).batches(7, **options)
        batches.set_epoch(epoch)
        list(islice(iterator := iter(batches), step))
        state = batches.state_dict()
        del iterator
        again = mixture(parts, samples=20).batches(5, **options)
        again.load_state_dict(state)
        assert taken(again) == whole[epoch * 20 + 7 * step : epoch * 20 + 20]


def test_a_state_fits_no_other_rows(datasets: list[Dataset]) -> None:
    others: list[Callable[[Dataset], Rows]] = [
        lambda ds: ds.blocks(6),
        lambda ds: ds.blocks(7),
        lambda ds: ds.pack(6),
        lambda ds: ds.pack(7, long="split"),
    ]
    mixes = [mix([(make(datasets[0]), 1), (make(datasets[1]), 1)], samples=8) for make in others]
    mixes.append(mix([(datasets[0], 1), (datasets[1], 1)], samples=8))
    for one in mixes:
        state = one.batches(2).state_dict()
        one.batches(2).load_state_dict(state)
        for other in mixes:
            if other is not one:
                with pytest.raises(sts.SafetensorsSparkError, match="the state is of another dataset"):
                    other.batches(2).load_state_dict(state)


def test_what_does_not_fit_is_an_error(datasets: list[Dataset], tmp_path: Path) -> None:
    a, b, _ = datasets
    tokens = open_dataset(b.samples.location, columns=["tokens"])
    (tmp_path / "floats").mkdir()
    wrong = {"tokens": np.zeros(8), "tokens.offsets": np.array([0, 8])}
    save_file(wrong, tmp_path / "floats" / "0.safetensors", {"column_kinds": '{"tokens":"ragged"}'})
    floats = open_dataset(tmp_path / "floats")
    pairs: list[tuple[Any, Any, str]] = [
        (a, b.blocks(6), "they are given as samples and blocks. Give datasets, or `blocks`, or `pack`, of all"),
        (a.pack(6), b.blocks(6), "they are given as packs and blocks."),
        (a.blocks(6), b.blocks(7), "as blocks and blocks of length 6 and of length 7. Give one length to all"),
        (a.pack(6), b.pack(7), "as packs and packs of length 6 and of length 7."),
        (a.pack(6), b.pack(6, padding=1), "filled up with .*'tokens': 0.* and with .*'tokens': 1.*Give one `padding`"),
        (a.blocks(6), tokens.blocks(6), "only one of them is read with the column `labels`"),
        (tokens.blocks(6), floats.blocks(6), "their column `tokens` is ragged, of dtype"),
    ]
    for one, other, message in pairs:
        places = f"{one.samples.location} and {other.samples.location}"
        with pytest.raises(sts.SafetensorsSparkError, match=f"{places} cannot be mixed: .*{message}"):
            mix([(one, 1), (other, 1)])
    (tmp_path / "none").mkdir()
    none = {"tokens": np.zeros(0, np.int64), "tokens.offsets": np.zeros(1, np.int64)}
    save_file(none, tmp_path / "none" / "0.safetensors", {"column_kinds": '{"tokens":"ragged"}'})
    with pytest.raises(sts.SafetensorsSparkError, match="/none has no blocks: leave it out of the mixture"):
        mix([(tokens.blocks(2), 1), (open_dataset(tmp_path / "none").blocks(2), 1)])
    with pytest.raises(TypeError, match="`max_tokens` is for samples in their own order"):
        mix([(a.blocks(6), 1)]).batches(max_tokens=20)
    assert f"Mix of {a.samples.location}: 5 blocks an epoch" in repr(mix([(a.blocks(6), 1)], samples=5))
    assert "batches of 2 packs" in repr(mix([(a.pack(6), 1)]).batches(2))


def test_steps_have_the_shares_of_their_weights(datasets: list[Dataset]) -> None:
    mixed_rows = mix([(datasets[0].blocks(6), 2), (datasets[1].blocks(6), 1)], step_samples=9, samples=27)
    found = taken(mixed_rows.batches(5))
    for begin in (0, 9, 18):
        assert Counter(row[0] // 1000 for row in found[begin : begin + 9]) == {0: 6, 1: 3}
