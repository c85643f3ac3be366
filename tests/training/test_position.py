"""Workers of an iteration take the same epoch, however much later than the others one of them begins."""

import os
import pickle
import signal
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, get_worker_info

from safetensors_spark.dataset import Dataset, open_dataset
from safetensors_spark.torch import BatchDataset, _position
from safetensors_spark.torch._position import SharedPosition
from training.conftest import Folder

SAMPLES = 34


@pytest.fixture(scope="module")
def points(numbered: Folder) -> Dataset:
    return open_dataset(numbered([7, 1, 12, 9, 5]))


def numbers(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["n"].tolist()]


def order(points: Dataset, epoch: int) -> list[int]:
    batches = BatchDataset(points, SAMPLES, shuffle=True)
    batches.set_epoch(epoch)
    return numbers(batches)


class Told(BatchDataset):
    """Says when worker 0 has begun its second iteration."""

    second: Event
    iterations = 0

    def __iter__(self) -> Iterator[Any]:
        iterator = super().__iter__()
        worker = get_worker_info()
        self.iterations += 1
        if worker is not None and worker.id == 0 and self.iterations == 2:
            self.second.set()
        return iterator


def test_a_worker_that_begins_when_another_is_in_the_next_iteration(points: Dataset) -> None:
    batches = Told(points, 3, shuffle=True)
    batches.second = get_context("fork").Event()

    def start(worker: int) -> None:
        if worker == 1:
            assert batches.second.wait(60)

    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=start,
        multiprocessing_context="fork",
    )
    assert next(iter(loader))["n"].tolist() == order(points, 0)[:3]
    assert numbers(loader) == order(points, 1)
    assert numbers(loader) == order(points, 2)


def test_iterations_of_the_same_random_seed(points: Dataset) -> None:
    """Some seed PyTorch again for each epoch, so that a DataLoader's workers have the same seeds each time."""
    batches = BatchDataset(points, 3, shuffle=True)
    for epoch in range(3):
        torch.manual_seed(0)
        assert numbers(DataLoader(batches, batch_size=None, num_workers=2)) == order(points, epoch)


def test_a_forked_process_goes_its_own_way(points: Dataset) -> None:
    batches = BatchDataset(points, 3, shuffle=True)
    iterator = iter(batches)
    next(iterator)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        right = numbers(iterator) == order(points, 0)[3:] and batches.epoch == 1
        os._exit(0 if right and numbers(batches) == order(points, 1) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (batches.epoch, batches.state_dict()["batches"]) == (0, 1)
    assert numbers(iterator) == order(points, 0)[3:]
    assert batches.epoch == 1


def test_a_process_that_it_is_sent_to_goes_its_own_way(points: Dataset) -> None:
    batches = BatchDataset(points, 3, shuffle=True)
    batches.set_epoch(2)
    process = get_context("spawn").Process(target=numbers, args=(batches,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert numbers(batches) == order(points, 2)


class Workers:
    """A DataLoader with persistent workers, whose iterations begin when they are told to."""

    def __init__(self, main: SharedPosition, count: int, seed: int) -> None:
        self.copies = [pickle.loads(pickle.dumps(main)) for _ in range(count)]
        for copy in self.copies:
            copy._apart, copy._shared = None, main._shared
        self._seed = seed
        # Of each worker the epochs and the places that it has begun at.
        self.begun: list[list[tuple[int, int]]] = [[] for _ in range(count)]

    def begin(self, worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
        info = SimpleNamespace(id=worker, num_workers=len(self.begun), seed=self._seed + worker)
        with monkeypatch.context() as patch:
            patch.setattr(_position, "get_worker_info", lambda: info)
            position = self.copies[worker]
            position.begin(complete=False)
            self.begun[worker].append(position.at)


def test_a_state_is_for_one_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    main = SharedPosition()
    workers = Workers(main, 2, seed=7)
    for copy in workers.copies:
        copy.resume(5, 40)
    for worker in (0, 1, 1, 0):
        workers.begin(worker, monkeypatch)
    assert workers.begun == [[(5, 40), (6, 0)]] * 2
    assert main.at == (6, 0)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 4), data=st.data())
def test_workers_begin_in_any_order(count: int, data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader begins its next iteration before all workers have begun this one. Epochs are set meanwhile."""
    main = SharedPosition()
    workers = Workers(main, count, data.draw(st.integers(0, 2**63 - 1)))
    expected: list[tuple[int, int]] = []
    coming = (0, 0)
    for _ in range(30):
        begun = [len(epochs) for epochs in workers.begun]
        # A worker acknowledges an iteration when it has begun the one before.
        able = [str(worker) for worker in range(count) if begun[worker] <= min(begun) + 1]
        what = data.draw(st.sampled_from([*able, "set", "hold"]))
        if what == "set":
            coming = data.draw(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**61)))
            main.set(*coming)
        elif what == "hold":
            if not main.pending:
                coming = (expected[-1][0], 0)
            main.hold()
        else:
            if begun[int(what)] == len(expected):
                expected.append(coming)
                coming = (coming[0] + 1, 0)
            workers.begin(int(what), monkeypatch)
        if not main.pending:
            assert main.at == expected[-1]
            assert main.by_workers
    assert all(epochs == expected[: len(epochs)] for epochs in workers.begun)
