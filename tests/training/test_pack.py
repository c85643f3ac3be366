"""Packs for PyTorch: the same as NumPy's, by workers, and from states; attention within documents alone."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.data import DataLoader

from safetensors_spark.dataset import Packs, open_dataset
from safetensors_spark.torch import BatchDataset

LENGTH = 8


@pytest.fixture
def packs(tmp_path: Path) -> Packs:
    for shard in range(3):
        lengths = torch.arange(20) % (4 + shard)
        offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        values = torch.randn(int(offsets[-1]), 4, generator=torch.Generator().manual_seed(shard))
        tensors = {"x": values, "x.offsets": offsets}
        save_file(tensors, tmp_path / f"{shard}.safetensors", {"column_kinds": '{"x":"ragged"}'})
    return open_dataset(tmp_path).pack(LENGTH, window_bytes=2000)


def taken(batches: Any) -> list[list[list[float]]]:
    return [row for batch in batches for row in batch["x"].tolist()]


def test_workers_and_states_have_the_packs_of_numpy(packs: Packs) -> None:
    options: dict[str, Any] = {"shuffle": True, "window_bytes": 2000}
    numpy = list(packs.batches(3, **options))
    batches = BatchDataset(packs, 3, **options)
    loader: DataLoader[Any] = DataLoader(batches, batch_size=None, num_workers=2)
    found = list(loader)
    for one, other in zip(found, numpy, strict=True):
        assert one["max_seqlen"] == other["max_seqlen"]
        for name in ("x", "input_pos", "document_ids", "cu_seqlens"):
            assert isinstance(one[name], torch.Tensor)
            assert torch.equal(one[name], torch.from_numpy(other[name]))
    batches.set_epoch(0)
    iterator = iter(batches)
    assert taken(next(iterator) for _ in range(2)) == taken(numpy)[:6]
    again = [BatchDataset(packs, 2, rank=rank, world_size=2, **options) for rank in range(2)]
    for one in again:
        one.load_state_dict(batches.state_dict())
    assert taken(batch for step in zip(*again, strict=True) for batch in step) == taken(numpy)[6:]


def test_documents_attend_to_themselves_alone(packs: Packs) -> None:
    """What `document_ids` masks is what `cu_seqlens` cuts."""
    for batch in BatchDataset(packs, 3):
        x, ids = batch["x"], batch["document_ids"]
        masked = scaled_dot_product_attention(x, x, x, attn_mask=ids[:, :, None] == ids[:, None, :])
        flat, ends = x.flatten(0, 1), batch["cu_seqlens"].tolist()
        documents = [flat[begin:end][None] for begin, end in pairwise(ends)]
        alone = torch.cat([scaled_dot_product_attention(one, one, one)[0] for one in documents])
        assert torch.allclose(masked.flatten(0, 1), alone, atol=1e-6)
