"""Mixtures of datasets for PyTorch: the same batches as NumPy's, by workers, and from states."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.utils.data import DataLoader

from safetensors_spark.dataset import Mix, mix, open_dataset
from safetensors_spark.torch import BatchDataset, SampleDataset


def weight(step: int) -> float:
    return 1 + step % 3


@pytest.fixture
def mixed(tmp_path: Path) -> Mix:
    for name, first, count in (("a", 0, 40), ("b", 1000, 9)):
        (tmp_path / name).mkdir()
        save_file({"n": torch.arange(first, first + count)}, tmp_path / name / "0.safetensors")
    return mix([(open_dataset(tmp_path / "a"), 2), (open_dataset(tmp_path / "b"), weight)], seed=3, step_samples=8)


def taken(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["n"].tolist()]


def test_workers_and_states_have_the_order_of_numpy(mixed: Mix) -> None:
    numpy = mixed.batches(5, shuffle=True)
    first, second = taken(numpy), taken(numpy)
    batches = BatchDataset(mixed, 5, shuffle=True)
    loader: DataLoader[Any] = DataLoader(batches, batch_size=None, num_workers=2)
    assert taken(loader) == first
    assert taken(loader) == second
    batches.set_epoch(0)
    iterator = iter(batches)
    begun = taken(next(iterator) for _ in range(4))
    again = [BatchDataset(mixed, 2, shuffle=True, rank=rank, world_size=2) for rank in range(2)]
    for one in again:
        one.load_state_dict(batches.state_dict())
    assert begun + taken(batch for step in zip(*again, strict=True) for batch in step) == first


@pytest.mark.parametrize("what", ["blocks", "pack"])
def test_workers_take_blocks_and_packs(tmp_path: Path, what: str) -> None:
    parts = []
    for name, first in (("a", 0), ("b", 1000)):
        (tmp_path / name).mkdir()
        for shard in range(2):
            tokens, ends = torch.arange(first, first + 60), torch.tensor([0, 5, 5, 12, 30, 31, 40, 52, 60])
            save_file(
                {"tokens": tokens + 60 * shard, "tokens.offsets": ends},
                tmp_path / name / f"{shard}.safetensors",
                {"column_kinds": '{"tokens":"ragged"}'},
            )
        dataset = open_dataset(tmp_path / name)
        parts.append(dataset.blocks(20) if what == "blocks" else dataset.pack(20))
    rows = mix([(parts[0], 2), (parts[1], weight)], seed=3, step_samples=8, samples=30)
    numpy, batches = rows.batches(4, shuffle=True), BatchDataset(rows, 4, shuffle=True)
    loader: DataLoader[Any] = DataLoader(batches, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    for _ in range(2):
        for expected, found in zip(numpy, loader, strict=True):
            assert expected.keys() == found.keys()
            assert all(np.array_equal(expected[name], found[name]) for name in expected)


def test_a_mixture_has_no_samples_by_number(mixed: Mix) -> None:
    with pytest.raises(TypeError, match="a Mix has no samples by number"):
        SampleDataset(mixed)  # type: ignore[arg-type]
