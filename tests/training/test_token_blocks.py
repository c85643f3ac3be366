"""Streams of tokens for PyTorch: the same blocks as NumPy's, by workers, and from states."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.utils.data import DataLoader

from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset, SampleDataset


def taken(batches: Any) -> list[list[float]]:
    return [row for batch in batches for row in batch["x"].tolist()]


def test_workers_and_states_have_the_blocks_of_numpy(tmp_path: Path) -> None:
    for shard in range(3):
        lengths = torch.arange(20) % (4 + shard)
        offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        values = torch.arange(int(offsets[-1])).to(torch.bfloat16)
        tensors = {"x": values, "x.offsets": offsets}
        save_file(tensors, tmp_path / f"{shard}.safetensors", {"column_kinds": '{"x":"ragged"}'})
    blocks = open_dataset(tmp_path).blocks(6)
    expected = taken(blocks.batches(3, shuffle=True, window_bytes=200))
    batches = BatchDataset(blocks, 3, shuffle=True, window_bytes=200)
    loader: DataLoader[Any] = DataLoader(batches, batch_size=None, num_workers=2)
    found = list(loader)
    assert (found[0]["x"].dtype, found[0]["x"].shape) == (torch.bfloat16, (3, 6))
    assert taken(found) == expected
    batches.set_epoch(0)
    iterator = iter(batches)
    assert taken(next(iterator) for _ in range(2)) == expected[:6]
    again = [BatchDataset(blocks, 2, shuffle=True, window_bytes=200, rank=rank, world_size=2) for rank in range(2)]
    for one in again:
        one.load_state_dict(batches.state_dict())
    assert taken(batch for step in zip(*again, strict=True) for batch in step) == expected[6:]
    with pytest.raises(TypeError, match="a Blocks has no samples by number"):
        SampleDataset(blocks)  # type: ignore[arg-type]
