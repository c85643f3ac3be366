"""Executors that are not the driver: they share no memory with it, as in every real cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from official import load
from spark_io import assert_says, files

JOB = Path(__file__).with_name("cluster_job.py")


@pytest.mark.short
def test_executors_in_processes_of_their_own_write_read_and_decode(path: Path) -> None:
    # A relative path: executors have working directories of their own.
    command = [sys.executable, str(JOB), path.name]
    run = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert [line for line in run.stderr.splitlines() if "Committer" in line] == []
    answer = json.loads(run.stdout.splitlines()[-1])
    assert sorted(answer["executors"]) == ["0", "1", "2", "3"]
    assert len(set(answer["executors"].values())) == 2
    expected = [[[float(row), 0.5] for row in range(begin, begin + 10)] for begin in (0, 10, 20, 30)]
    loaded = [load(path.parent / shard)["x"] for shard in answer["shards"]]
    assert [tensor.dtype for tensor in loaded] == ["BF16"] * 4
    assert [tensor.array.astype(np.float32).tolist() for tensor in loaded] == expected
    assert [np.array(values).reshape(10, 2).tolist() for values in answer["values"]] == expected
    assert answer["tensors"] == {str(key): [key, 7] for key in range(40)}
    assert answer["by_path"] == [[float(row)] for row in range(20)]
    rows = [[list(range(n + 1)), "é" * n, n] for n in range(20)]
    assert answer["decoded"] == {"path": rows, "table": rows, "twice": [row for row in rows for _ in range(2)]}
    assert_merged(answer["merged"])
    assert_keyed(path.with_name("keyed"), [path.parent / shard for shard in answer["keyed"]], answer["error"])


def assert_merged(answer: dict[str, Any]) -> None:
    """Holds that both executors looked at headers, and that a broken file is named in one line."""
    nullable = {"x": False} | {f"own {number}": True for number in range(40)}
    assert answer["nullable"] == nullable
    assert len(set(answer["executors"].values())) == 2
    assert_says(answer["error"], "No schema can be inferred", "31.safetensors", "HeaderTooSmall")
    assert "\n" not in answer["error"]


def assert_keyed(directory: Path, shards: list[Path], error: str) -> None:
    """Holds that every key is in a shard and in the index, and that an append failed with the row and left nothing."""
    tensors = {key: (shard.name, tensor) for shard in shards for key, tensor in load(shard).items()}
    assert {key: tensor.array.tolist() for key, (_, tensor) in tensors.items()} == {
        str(key): [key, 7] for key in range(40)
    }
    index = pq.read_table(directory / "_tensor_index.parquet").to_pylist()
    assert {entry["tensor_key"]: entry["file_name"] for entry in index} == {key: at for key, (at, _) in tensors.items()}
    assert_says(error, "`x`", "key `256`", "U8 cannot hold 256")
    assert {name for name in files(directory) if name.endswith(".safetensors")} == {shard.name for shard in shards}
