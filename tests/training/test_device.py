"""Batches that threads cast, transform, pin and copy to a device."""

import threading
from collections import namedtuple
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from safetensors_spark import SafetensorsSparkError
from safetensors_spark.dataset import Dataset, open_dataset
from safetensors_spark.torch import BatchDataset
from training.conftest import Folder

Pair = namedtuple("Pair", ["x", "n"])


@pytest.fixture(scope="module")
def points(numbered: Folder) -> Dataset:
    return open_dataset(numbered([7, 12, 15]))


def test_dtypes(points: Dataset) -> None:
    def dtypes(dtype: Any) -> dict[str, torch.dtype]:
        return {name: tensor.dtype for name, tensor in next(iter(BatchDataset(points, 8, dtype=dtype))).items()}

    assert dtypes(None) == {"n": torch.int64, "x": torch.float32}
    assert dtypes(torch.bfloat16) == {"n": torch.int64, "x": torch.bfloat16}
    assert dtypes({"n": torch.int32}) == {"n": torch.int32, "x": torch.float32}
    with pytest.raises(SafetensorsSparkError, match="`dtype` names the column `y`"):
        BatchDataset(points, 8, dtype={"y": torch.int32})


def summed(batch: dict[str, Tensor]) -> Any:
    """In the nested structures that models take."""
    return Pair([batch["x"].sum((1, 2))], ({"n": batch["n"]}, threading.current_thread().name))


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_transform_runs_in_the_threads(points: Dataset, device: Any, threads: int) -> None:
    batches = BatchDataset(points, 8, transform=summed, dtype=torch.float64, device=device, threads=threads)
    found = list(batches)
    assert [len(pair.x[0]) for pair in found] == [8, 8, 8, 8, 2]
    for pair in found:
        numbers, name = pair.n
        assert pair.x[0].dtype == torch.float64
        assert torch.equal(pair.x[0], 6.0 * numbers["n"])
        assert name.startswith("safetensors-spark-batches") == (threads > 0)


def test_a_transform_runs_in_worker_processes(points: Dataset) -> None:
    loader = DataLoader(
        BatchDataset(points, 8, transform=summed), batch_size=None, num_workers=1, multiprocessing_context="spawn"
    )
    assert torch.cat([pair.n[0]["n"] for pair in loader]).tolist() == list(range(34))


def test_batches_are_on_the_device(points: Dataset) -> None:
    """PyTorch's device "meta" is one that every machine has."""
    batches = BatchDataset(points, 8, device="meta", shuffle=True)
    found = list(batches)
    assert all(tensor.device.type == "meta" for batch in found for tensor in batch.values())
    assert [batch["x"].shape[0] for batch in found] == [8, 8, 8, 8, 2]
    assert batches.epoch == 1
    nested = next(iter(BatchDataset(points, 8, device="meta", transform=summed)))
    assert (nested.x[0].device.type, nested.n[0]["n"].device.type) == ("meta", "meta")


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"pin_memory": True}])
def test_worker_processes_have_no_device(points: Dataset, options: dict[str, Any]) -> None:
    loader = DataLoader(BatchDataset(points, 8, **options), batch_size=None, num_workers=1)
    with pytest.raises(SafetensorsSparkError, match="`device` and `pin_memory` are for threads"):
        next(iter(loader))


@pytest.mark.skipif(torch.cuda.is_available(), reason="memory is pinned")
def test_without_cuda_nothing_is_pinned(points: Dataset) -> None:
    with pytest.warns(UserWarning, match="pin_memory has no effect: PyTorch finds no CUDA device"):
        found = list(BatchDataset(points, 8, pin_memory=True))
    assert sum(len(batch["n"]) for batch in found) == 34


class FakeStream:
    """A stream that keeps what it is told, as CUDA is on few machines."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self._log = log

    def record_event(self) -> str:
        self._log.append(("copied", threading.current_thread().name))
        return "event"

    def wait_event(self, event: str) -> None:
        assert event == "event"
        self._log.append(("waited", threading.current_thread().name))


def test_copies_to_cuda_overlap(points: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads pin and copy in a stream of their own; the caller's stream waits for the copy of its batch."""
    log: list[tuple[str, str]] = []
    stream = FakeStream(log)
    pinned, copies, kept = set(), [], []

    def pin(tensor: Tensor) -> Tensor:
        pinned.add(id(tensor))
        return tensor

    def copy(tensor: Tensor, device: torch.device, non_blocking: bool) -> Tensor:
        assert id(tensor) in pinned
        copies.append((str(device), non_blocking))
        return tensor

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(Tensor, "to", copy)
    monkeypatch.setattr(Tensor, "record_stream", lambda tensor, stream: kept.append(stream))
    batches = BatchDataset(points, 8, device="cuda")
    for step, batch in enumerate(batches):
        assert batch["n"].tolist() == list(range(8 * step, min(8 * step + 8, 34)))
        assert [what for what, _ in log].count("waited") == step + 1
    assert copies == [("cuda:1", True)] * 10
    assert kept == [stream] * 10
    assert {thread for what, thread in log if what == "waited"} == {"MainThread"}
    assert all(thread.startswith("safetensors-spark-batches") for what, thread in log if what == "copied")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda(points: Dataset) -> None:
    for batch in BatchDataset(points, 8, device="cuda", shuffle=True):
        assert batch["x"].is_cuda
        assert torch.equal(batch["x"].cpu(), batch["n"].cpu()[:, None, None].expand(-1, 2, 3).float())
    assert next(iter(BatchDataset(points, 8, pin_memory=True)))["x"].is_pinned()
