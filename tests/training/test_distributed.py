"""Ranks that are processes, with `torch.distributed`."""

import json
import os
import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark.dataset import open_dataset
from safetensors_spark.dataset._order import Order, Shuffle
from training.conftest import Folder


def run(ranks: int, *arguments: Path) -> list[dict[str, Any]]:
    """What each rank said in the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("rank.py")), *map(str, arguments)]
    running = [subprocess.Popen(command, env=os.environ | shared | {"RANK": str(rank)}) for rank in range(ranks)]
    try:
        assert [process.wait(300) for process in running] == [0] * ranks
    finally:
        for process in running:
            process.kill()
    return [json.loads(Path(f"{arguments[1]}.{rank}").read_text()) for rank in range(ranks)]


def test_two_processes_then_three(numbered: Folder, tmp_path: Path) -> None:
    """Two take half of an epoch, and three go on: each has as many batches, and every sample is taken once."""
    folder = numbered([30, 20, 25, 14])
    first = run(2, folder, tmp_path / "first")
    assert first[0]["state"] == first[1]["state"]
    (tmp_path / "state").write_text(json.dumps(first[0]["state"]))
    second = run(3, folder, tmp_path / "second", tmp_path / "state")
    for ranks in (first, second):
        assert len({len(rank["taken"]) for rank in ranks}) == 1
    taken = [
        number
        for ranks in (first, second)
        for step in zip(*(rank["taken"] for rank in ranks), strict=True)
        for number in chain.from_iterable(step)
    ]
    order = Order(open_dataset(folder).shards, Shuffle(3, 1 << 30), 6)
    assert taken == order.take(np.arange(89)).tolist()
