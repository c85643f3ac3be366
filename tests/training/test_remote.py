"""Remote shards: prefetched for a window, in a cache that may be smaller than what is read."""

import time
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader

from safetensors_spark._files.cache import Cache
from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset
from training.conftest import Folder


@pytest.fixture
def remote(numbered: Folder) -> str:
    """Eight shards of fifty samples."""
    fsspec.filesystem("memory").put(str(numbered([50] * 8)), "/torch/points", recursive=True)
    return "memory://torch/points"


@pytest.fixture
def shard_bytes(remote: str) -> int:
    return int(fsspec.filesystem("memory").size("/torch/points/00000.safetensors"))


def numbers(batches: Any) -> list[int]:
    return sorted(torch.cat([batch["n"] for batch in batches]).tolist())


def test_remote_shards_are_there_when_their_window_begins(
    remote: str, shard_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = open_dataset(remote, cache_dir=tmp_path, cache_bytes=5 * shard_bytes)
    memory = fsspec.filesystem("memory")
    opened: list[str] = []
    original = memory.open

    def counted(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(type(memory), "open", counted)
    batches = BatchDataset(ds, 10, shuffle=True, window_bytes=2 * shard_bytes)
    found = [batch["n"] for batch in batches]
    assert sorted(torch.cat(found).tolist()) == list(range(400))
    # Each window's shards are read together, and downloaded once, though not all of them fit.
    assert sorted(opened) == sorted(f"/torch/points/{number:05}.safetensors" for number in range(8))
    assert len({int(number) // 50 for number in torch.cat(found[:10])}) == 2
    # In order, what lies far ahead is left where it is.
    opened.clear()
    ordered = open_dataset(remote, cache_dir=tmp_path / "other")
    next(iter(BatchDataset(ordered, 10, threads=0)))
    assert len(opened) <= 2


@pytest.mark.parametrize("workers", [0, 3])
def test_a_cache_of_fewer_shards_than_are_read_together(
    remote: str, shard_bytes: int, tmp_path: Path, workers: int
) -> None:
    """Shards go from the disk as soon as they are there, also those that another process is about to open."""
    batches = BatchDataset(open_dataset(remote, cache_dir=tmp_path, cache_bytes=shard_bytes), 10, shuffle=True)
    for epoch in range(3):
        batches.set_epoch(epoch)
        assert numbers(DataLoader(batches, batch_size=None, num_workers=workers)) == list(range(400))
    assert sum(one.bytes for one in Cache(tmp_path, 0).shards()) <= (workers + 1) * shard_bytes


def test_workers_are_forked_while_shards_are_on_their_way(
    remote: str, shard_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = fsspec.filesystem("memory").open

    def slow(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        time.sleep(0.2)
        return original(path, *arguments, **options)

    ds = open_dataset(remote, cache_dir=tmp_path)
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "open", slow)
    batches = BatchDataset(ds, 10, shuffle=True, window_bytes=2 * shard_bytes)
    # The next window's are now downloaded by threads, which the workers do not have.
    next(iter(batches))
    batches.set_epoch(1)
    loader = DataLoader(batches, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
    assert numbers(loader) == list(range(400))
