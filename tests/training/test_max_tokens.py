"""Batches of so many tokens for PyTorch: the same as NumPy's, by workers, and from states."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.utils.data import DataLoader

from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset


def taken(batches: Any) -> list[list[int]]:
    return [batch["n"].tolist() for batch in batches]


def test_workers_and_states_have_the_batches_of_numpy(tmp_path: Path) -> None:
    for shard in range(3):
        lengths = torch.arange(20) % (4 + shard)
        offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        tensors = {"x": torch.ones(int(offsets[-1])), "x.offsets": offsets, "n": torch.arange(20) + 20 * shard}
        save_file(tensors, tmp_path / f"{shard}.safetensors", {"column_kinds": '{"x":"ragged"}'})
    ds = open_dataset(tmp_path)
    expected = taken(ds.batches(max_tokens=10, shuffle=True, window_bytes=200))
    batches = BatchDataset(ds, max_tokens=10, shuffle=True, window_bytes=200, ragged="packed")
    loader: DataLoader[Any] = DataLoader(batches, batch_size=None, num_workers=2)
    found = list(loader)
    assert taken(found) == expected
    assert max(len(batch["x"].values) for batch in found) == 10
    batches.set_epoch(0)
    iterator = iter(batches)
    assert taken(next(iterator) for _ in range(3)) == expected[:3]
    again = BatchDataset(ds, max_tokens=10, shuffle=True, window_bytes=200)
    again.load_state_dict(batches.state_dict())
    assert taken(again) == expected[3:]
