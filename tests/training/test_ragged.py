"""Rows of different lengths, text and bytes, as PyTorch has them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.utils.data import DataLoader

from safetensors_spark.dataset import Ragged, open_dataset
from safetensors_spark.torch import BatchDataset, Packed, Padded, SampleDataset, collate
from training.test_columns import same

LENGTHS = [3, 0, 200, 1, 7, 0, 500, 2, 0]
WORDS = ["a", "", "zweiäö", "日本", "b" * 300, "🤷🏽‍♀️", "c", "d", "e"]
COUNTS = [4, 5]
KINDS = '{"caption":"text","day":"date","image":"binary","tokens":"ragged","vectors":"ragged"}'


def tokens(row: int) -> torch.Tensor:
    return torch.arange(LENGTHS[row]) + row


def vectors(row: int) -> torch.Tensor:
    return torch.full((LENGTHS[row] % 5, 2), row, dtype=torch.bfloat16)


def ends(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *np.cumsum(lengths)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    begin = 0
    for shard, count in enumerate(COUNTS):
        rows = range(begin, begin + count)
        texts = [WORDS[row].encode() for row in rows]
        text = torch.tensor(list(b"".join(texts)), dtype=torch.uint8)
        tensors = {
            "n": torch.tensor(rows),
            "day": torch.tensor(rows, dtype=torch.int32),
            "tokens": torch.cat([tokens(row) for row in rows]),
            "tokens.offsets": ends([LENGTHS[row] for row in rows]),
            "vectors": torch.cat([vectors(row) for row in rows]),
            "vectors.offsets": ends([len(vectors(row)) for row in rows]),
            "caption": text,
            "caption.offsets": ends([len(one) for one in texts]),
            "image": text.clone(),
            "image.offsets": ends([len(one) for one in texts]),
        }
        save_file(tensors, tmp_path / f"{shard}.safetensors", {"column_kinds": KINDS})
        begin += count
    return tmp_path


def check(batch: dict[str, Any]) -> None:
    """That rows are those of the batch's numbers."""
    rows = batch["n"].tolist()
    assert batch["day"].tolist() == rows
    assert batch["caption"] == [WORDS[row] for row in rows]
    assert batch["image"] == [WORDS[row].encode() for row in rows]
    for name, row_of in (("tokens", tokens), ("vectors", vectors)):
        wanted = [row_of(row) for row in rows]
        found = batch[name]
        if isinstance(found, Packed):
            assert same(found.values, torch.cat(wanted))
            assert same(found.cu_seqlens, ends([len(row) for row in wanted]).int())
            assert found.max_seqlen == max(map(len, wanted))
        elif isinstance(found, Padded):
            assert found.mask.sum(1).tolist() == [len(row) for row in wanted]
            assert same(found.values[found.mask], torch.cat(wanted))
            assert not found.values[~found.mask].any()
        else:
            assert found.layout == torch.jagged
            assert all(same(one, row) for one, row in zip(found.unbind(), wanted, strict=True))


FORMS: list[Any] = ["nested", "packed", "padded", {"tokens": "packed"}]


@pytest.mark.parametrize("ragged", FORMS)
@pytest.mark.parametrize("workers", [0, 1])
def test_batches(folder: Path, ragged: Any, workers: int) -> None:
    for shuffle, size in ((False, 4), (True, 9), (True, 2), (False, 1)):
        batches = BatchDataset(open_dataset(folder), size, shuffle=shuffle, ragged=ragged)
        found = list(DataLoader(batches, batch_size=None, num_workers=workers) if workers else batches)
        assert sorted(row for batch in found for row in batch["n"].tolist()) == list(range(9))
        for batch in found:
            check(batch)


def test_tensors_are_the_caller_s(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for batch in BatchDataset(open_dataset(folder), 4):
        batch["tokens"].values().add_(1)
    SampleDataset(open_dataset(folder))[2]["tokens"].add_(1)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    check(next(iter(BatchDataset(open_dataset(folder), 4))))


def test_casts_transforms_and_devices(folder: Path) -> None:
    options: list[dict[str, Any]] = [
        {"device": "cpu"},
        {"device": "meta"},
        {"transform": lambda batch: batch | {"more": 1}},
    ]
    for more in options:
        for ragged in ("nested", "packed", "padded"):
            batches = BatchDataset(open_dataset(folder), 4, dtype={"tokens": torch.int32}, ragged=ragged, **more)
            batch = next(iter(batches))
            tokens_of, vectors_of = batch["tokens"], batch["vectors"]
            if ragged == "nested":
                tokens_of, vectors_of = ({"values": one.values()} for one in (tokens_of, vectors_of))
            else:
                tokens_of, vectors_of = (one._asdict() for one in (tokens_of, vectors_of))
            assert (tokens_of["values"].dtype, vectors_of["values"].dtype) == (torch.int32, torch.bfloat16)
            assert tokens_of["values"].device.type == more.get("device", "cpu")
            assert batch["caption"] == WORDS[:4]
    floats = next(iter(BatchDataset(open_dataset(folder), 4, dtype=torch.float32)))
    assert (floats["vectors"].dtype, floats["tokens"].dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize("ragged", FORMS)
@pytest.mark.parametrize("workers", [0, 1])
def test_samples(folder: Path, ragged: Any, workers: int) -> None:
    samples = SampleDataset(open_dataset(folder), ragged=ragged)
    for row in range(9):
        sample = samples[row]
        assert same(sample["tokens"], tokens(row))
        assert same(sample["vectors"], vectors(row))
        assert (sample["caption"], sample["image"]) == (WORDS[row], WORDS[row].encode())
        assert (sample["n"], sample["day"]) == (row, row)
    for batch in DataLoader(samples, batch_size=4, shuffle=True, num_workers=workers, collate_fn=collate):
        check(batch)


def test_rows_of_a_slice_as_a_nested_tensor(folder: Path) -> None:
    ds = open_dataset(folder)
    rows = ds[1:7]["vectors"]
    assert all(same(one, vectors(row)) for one, row in zip(rows.copy().to_torch().unbind(), range(1, 7), strict=True))
    own = Ragged(np.arange(6, dtype=np.float32), np.array([0, 2, 6]))
    nested = own.to_torch()
    nested.values().add_(1)
    assert own.values[0] == 1
    assert ds["image"].copy().to_torch().values().dtype == torch.uint8
    with pytest.raises(ValueError, match=r"PyTorch has no tensors of text: take `tolist\(\)`"):
        ds["caption"].to_torch()


def test_a_model_learns_from_nested_batches(folder: Path) -> None:
    layer = torch.nn.Linear(2, 3)
    for batch in BatchDataset(open_dataset(folder), 4, shuffle=True, dtype=torch.float32):
        layer(batch["vectors"]).values().sum().backward()
    assert layer.weight.grad is not None
    wanted = sum(float(vectors(row).sum()) for row in range(9)) / 2
    assert layer.weight.grad.tolist() == [[wanted, wanted]] * 3
