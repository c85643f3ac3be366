"""Training with a dataset of the Hub, from a server of its API."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import hub
from safetensors_spark.dataset import DatasetWriter

# The workers of each method have a cache of their own.
TRAIN = """
import sys
import torch
from huggingface_hub import HfApi
from torch.utils.data import DataLoader
from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset

def epochs(points, **workers):
    batches = BatchDataset(points, batch_size=32, shuffle=True, seed=3)
    for epoch in range(2):
        batches.set_epoch(epoch)
        yield [batch["n"] for batch in DataLoader(batches, batch_size=None, **workers)]

if __name__ == "__main__":
    folder = sys.argv[1]
    opened = {one: open_dataset("hf://datasets/me/points", cache_dir=f"{folder}/{one}") for one in ("fork", "spawn")}
    # Somebody publishes other samples before a worker has asked for a shard.
    HfApi().upload_folder(
        repo_id="me/points", folder_path=f"{folder}/others", repo_type="dataset", delete_patterns="*.safetensors"
    )
    for method, points in opened.items():
        found = list(epochs(points, num_workers=2, multiprocessing_context=method))
        for numbers, expected in zip(found, epochs(points), strict=True):
            assert sorted(torch.cat(numbers).tolist()) == list(range(1000)), method
            assert all(map(torch.equal, numbers, expected)), method
"""


def test_workers_read_one_commit_and_download_each_shard_once(tmp_path: Path) -> None:
    for name, first in (("points", 0), ("others", 5000)):
        with DatasetWriter(tmp_path / name, batch_size=100) as writer:
            writer.write({"n": np.arange(first, first + 1000)})
    train = tmp_path / "train.py"
    train.write_text(TRAIN)
    with hub.running(tmp_path / "hub") as server:
        publish = ["-m", "safetensors_spark", "publish", "dataset", str(tmp_path / "points"), "me/points"]
        for command in (publish, [str(train), str(tmp_path)]):
            done = subprocess.run(
                [sys.executable, *command], env=server.environment(), capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, done.stderr
        read = Counter(path for _, path in server.counts().elements() if path.endswith(".safetensors"))
        assert sorted(read.values()) == [2] * 10
