"""Remote shards: prefetched for a window, in a cache that may be smaller than what is read."""

import threading
import time
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader

import safetensors_spark as sts
from safetensors_spark._files.cache import Cache
from safetensors_spark.dataset import open_dataset
from safetensors_spark.dataset._order import Order, Shuffle
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


def test_the_next_window_is_downloaded_meanwhile(
    remote: str, shard_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first window's batches are used, and not before the second one begins."""
    memory, came = fsspec.filesystem("memory"), threading.Condition()
    opened: set[str] = set()
    original = memory.open

    def noted(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        with came:
            opened.add(path.rpartition("/")[2])
            came.notify()
        return original(path, *arguments, **options)

    monkeypatch.setattr(type(memory), "open", noted)
    ds = open_dataset(remote, cache_dir=tmp_path)
    window = 2 * shard_bytes
    next(iter(BatchDataset(ds, 10, shuffle=True, window_bytes=window, threads=0)))
    coming = {shard.file for shard in Order(ds.shards, Shuffle(0, window), 0).shards(0, len(ds))}
    assert len(coming) == 4
    with came:
        assert came.wait_for(lambda: opened >= coming, 60)
    assert opened == coming


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_node_downloads_only_what_its_ranks_need(
    remote: str, shard_bytes: int, tmp_path: Path, shuffle: bool
) -> None:
    """Two nodes of two ranks: half of the shards each, and those of a window that they share."""
    taken, cached = [], []
    for node in range(2):
        directory = tmp_path / str(node)
        ds = open_dataset(remote, cache_dir=directory)
        for rank in (2 * node, 2 * node + 1):
            batches = BatchDataset(
                ds, 10, shuffle=shuffle, window_bytes=shard_bytes, rank=rank, world_size=4, nodes=2, threads=0
            )
            assert len(batches) == 10
            taken += [batch["n"] for batch in batches]
        cached.append({one.path.name for one in Cache(directory, 0).shards()})
    assert sorted(torch.cat(taken).tolist()) == list(range(400))
    assert [len(one) for one in cached] == [4, 4]
    assert not cached[0] & cached[1]


def test_states_of_nodes(remote: str, tmp_path: Path) -> None:
    ds = open_dataset(remote, cache_dir=tmp_path)

    def batches(size: int, rank: int, world_size: int, nodes: int) -> BatchDataset:
        return BatchDataset(ds, size, shuffle=True, rank=rank, world_size=world_size, nodes=nodes)

    first = [batches(10, rank, 4, 2) for rank in range(4)]
    taken = [next(iter(one))["n"] for one in first]
    state = first[0].state_dict()
    # As many nodes, but other ranks and batches.
    second = [batches(7, rank, 2, 2) for rank in range(2)]
    for one in second:
        one.load_state_dict(state)
        taken += [batch["n"] for batch in one]
    assert sorted(torch.cat(taken).tolist()) == list(range(400))
    with pytest.raises(sts.SafetensorsSparkError, match="the state is of 2 nodes"):
        batches(10, 0, 4, 4).load_state_dict(state)
    # Between epochs any number.
    batches(10, 0, 4, 4).load_state_dict(batches(10, 0, 4, 2).state_dict())
    for wrong, what in ((3, "nodes is 3"), (0, "nodes is 0")):
        with pytest.raises(ValueError, match=what):
            batches(10, 0, 4, wrong)


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
